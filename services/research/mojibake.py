"""Repairs UTF-8 that some program took for an older code: Ã¸, â€“, √∏, ├©.

Only what decodes to a letter or sign of European text is touched. A letter that is a Norwegian, Swedish or Finnish one
itself (Å, Ä) may well stand before a closing quote, so it counts as broken only where the paste has other broken signs.
"""

import re
from functools import lru_cache

MOST_PASSES = 4  # text that was broken four times over
_C1 = {byte: chr(byte) for byte in range(0x80, 0xA0)}


def _code(name: str) -> dict[int, str]:
    """The upper half of an eight-bit code; a byte that it leaves open is the control character of that number."""
    return {byte: bytes([byte]).decode(name, "ignore") or _C1[byte] for byte in range(0x80, 0x100)}


_CODES = tuple(map(_code, ("cp1252", "latin-1", "mac-roman", "cp850", "cp437")))
_WINDOWS, _LATIN, _MAC, _DOS, _DOS_US = _CODES
_SIGNS = "".join(map(chr, range(0xA0, 0xC0))) + "‹›‘’‚“”„–—…•×÷™€‰†‡˜ˆ\u200b\u200d\ufeff\ufffd‐‑−→←↑↓★☆✓✔✗▢□■●○ﬁﬂ≥≤≈"
_LETTERS = "".join(map(chr, [*range(0xC0, 0xD7), *range(0xD8, 0xF7), *range(0xF8, 0x100)]))
_SAMI = "ČčĐđŊŋŠšŦŧŽžŒœŸƒ"
_SURE_LEADS, _EMOJI_LEADS = "ÃÂâïË√¬‚├┬Ô", "ðŸ"


def _broken() -> dict[str, str]:
    """What each sign looks like in each wrong code."""
    table: dict[str, str] = {}
    for code in _CODES:
        for sign in _SIGNS + _LETTERS + _SAMI:
            seen = "".join(code[byte] for byte in sign.encode())
            if seen[0] in _SURE_LEADS or seen[0] in "ÄÅ":
                table.setdefault(seen, sign)
    return table


_TABLE = _broken()
_EMOJI_TAIL = "[" + re.escape("".join({*[_WINDOWS[byte] for byte in range(0x80, 0xC0)], *_C1.values()})) + "]"


def _pattern(leads: str, *more: str) -> re.Pattern[str]:
    """Lead and followers as classes: an alternation of hundreds of strings would be tried one by one."""
    forms = list(more)
    for length in (2, 3):
        keys = [seen for seen in _TABLE if seen[0] in leads and len(seen) == length]
        if keys:
            forms.append(
                "".join("[" + re.escape("".join(sorted(set(signs)))) + "]" for signs in zip(*keys, strict=True))
            )
    return re.compile("|".join(forms))


_SURE = _pattern(_SURE_LEADS, f"{_EMOJI_LEADS}{_EMOJI_TAIL}{{2}}")
_DOUBTFUL = _pattern("ÄÅ")
_LOST = re.compile('(?<![^\\s«(])â(?=[ «"])')  # a dash or quote whose two control characters are lost
_LEADS = re.compile("[ÃÂâïËð√¬‚├┬ÔÄÅ]")
_LEAST_OTHERS = 2
_BYTE = {sign: byte for byte, sign in {**_LATIN, **_WINDOWS}.items()} | {sign: byte for byte, sign in _C1.items()}


def has_broken_signs(text: str) -> bool:
    """Whether so much is surely broken that doubtful signs are broken, too."""
    if not any(lead in text for lead in (*_SURE_LEADS, _EMOJI_LEADS)):
        return False  # a hundred times as fast as the pattern
    found = _SURE.finditer(text)
    return sum(1 for _ in zip(range(_LEAST_OTHERS), found, strict=False)) == _LEAST_OTHERS


def repair(line: str, *, others_are_broken: bool) -> str:
    """The line as it was meant; unchanged where no end of repairing comes in sight."""
    if not _LEADS.search(line):
        return line
    repaired = line
    for _ in range(MOST_PASSES):
        before = repaired
        repaired = _SURE.sub(_meant, before)
        if others_are_broken:
            repaired = _LOST.sub("–", _DOUBTFUL.sub(_meant, repaired))
            repaired = repaired.replace("Ã ", "à ") if "Ã " in repaired else repaired
        if repaired == before:
            return repaired
    return line


def _meant(match: re.Match[str]) -> str:
    return _decoded(match.group())


@lru_cache(maxsize=1024)
def _decoded(seen: str) -> str:
    if seen in _TABLE:
        return _TABLE[seen]
    try:
        return bytes(_BYTE[sign] for sign in seen).decode()
    except (UnicodeDecodeError, KeyError):
        return seen
