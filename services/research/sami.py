"""Tells Northern Sámi, which the detector of the other languages does not know, by its letters and small words."""

import re

NORTHERN_SAMI = "se"
_WORD = re.compile(r"[^\W\d_]+")
_SMALL_WORDS = frozenset(
    (
        "ja", "lea", "leat", "lei", "ledje", "go", "gos", "dat", "dan", "daid", "dán", "dát", "ii", "eai", "mii",
        "maid", "mat", "son", "sii", "don", "mun", "nu", "dasa", "dego", "muhto", "vai", "leamaš", "ahte",
        "maŋŋel", "ovdal", "dalle", "dál", "deike", "buot", "eará", "olu", "nugo",
    )
)  # fmt: skip
_LETTERS = frozenset("čđŋšŧž")
_LEAST_WORDS, _LEAST_SHARE = 20, 0.25


def is_northern_sami(text: str) -> bool:
    """Whether a quarter of the words are small words of the language, or hold a letter that its neighbours lack."""
    words = _WORD.findall(text.lower())
    told = sum(1 for word in words if word in _SMALL_WORDS or not _LETTERS.isdisjoint(word))
    return len(words) >= _LEAST_WORDS and told >= _LEAST_SHARE * len(words)
