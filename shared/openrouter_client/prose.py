"""A model's own words: on one line or in paragraphs, of bounded length, without addresses that its source lacks."""

import re
import unicodedata

from openrouter_client.unicode_text import sound_text

LONGEST = 20  # times its limit: so much of a text is looked at
_REST = r"[^\s<>«»\"]"
_DOT = r"(?:[.．。]|[\[(](?:\.|dot)[\])])"
_LABELS = rf"(?:[\w-]{{1,63}}{_DOT}){{1,8}}"
# Endings that make an address of two words with a dot between; others need a path, since a blank may be missing.
_ENDINGS = (
    "com|net|org|info|biz|io|ai|dev|app|xyz|online|site|shop|store|club|top|live|icu|tv|fm|gg|ly|cc|co|link|click"
    "|edu|gov|eu|no|dk|uk|nl|ru|cn|ua"
)
_ADDRESS = re.compile(
    "|".join(
        (
            rf"(?:\b[a-z][a-z0-9+.-]{{1,20}}:?)?//\s?{_REST}{{1,500}}",
            rf"\b(?:mailto|tel|sms|javascript|data):(?=\S){_REST}{{1,500}}",
            rf"\bwww[.．]{_REST}{{1,500}}",
            rf"[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:{_DOT}[\w-]{{1,63}}){{1,8}}",
            rf"(?<![\w.]){_LABELS}[^\W\d_]{{2,24}}(?::\d{{1,5}})?/{_REST}{{1,500}}",
            rf"(?<![\w.]){_LABELS}(?:{_ENDINGS})\b(?::\d{{1,5}})?/?",
            rf"\bxn--{_REST}{{1,500}}",
            rf"(?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\w.]\w)(?:[:/]{_REST}{{1,500}})?",
        )
    ),
    re.IGNORECASE,
)
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Prose:
    """Cleans texts and counts what it took out. `source` is what they are about, and what is known beforehand."""

    def __init__(self, source: str) -> None:
        self._source = _words(source)
        self.dropped_addresses = 0

    def line(self, text: str, limit: int) -> str:
        """The text on one line, cut at a word."""
        return _cut(" ".join(self._clean(text[: LONGEST * limit]).split()), limit)

    def lines(self, texts: tuple[str, ...], count: int, limit: int) -> list[str]:
        """The first `count` texts that say something, each once."""
        found: dict[str, str] = {}
        for text in texts:
            if line := self.line(text, limit):
                found.setdefault(line.casefold(), line)
        return list(found.values())[:count]

    def paragraphs(self, text: str, limit: int) -> str:
        """The text in paragraphs, with a blank line between two."""
        parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", self._clean(text[: LONGEST * limit])))
        return _cut("\n\n".join(part for part in parts if part), limit)

    def _clean(self, text: str) -> str:
        text = unicodedata.normalize("NFC", _INVISIBLE.sub("", sound_text(text)))
        text = "".join(" " if unicodedata.category(letter) == "Cc" and letter != "\n" else letter for letter in text)
        return _ADDRESS.sub(self._address, text)

    def _address(self, found: re.Match[str]) -> str:
        if _words(found.group()) in self._source:
            return found.group()
        self.dropped_addresses += 1
        return ""


def _words(text: str) -> str:
    """The words alone, each between blanks: a recognizer may write an address without its signs."""
    return f" {_BETWEEN_WORDS.sub(' ', text.casefold()).strip()} "


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    end = max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit))
    return text[: end if end > limit // 2 else limit - 1].rstrip(" ,;:–-\n") + "…"
