"""Joins lines that a PDF, a mail or an editor wrapped, and words that were broken at a line's end.

Two lines are one where the next begins in lower case, or where the text is wrapped throughout and the next word would
not have found room. Lists, tables, code and verse stay as they are. Each join is told, so that it can be undone.
"""

import re
from collections import Counter
from itertools import pairwise

from services.research.line import Line

_SHORTEST, _LONGEST = 40, 130  # characters of a line that was wrapped
_LEAST_FULL = 0.6  # of the widest line beside it
_ENDS, _CLOSING = frozenset(".!?:;"), "»”\"')]"
_BROKEN = re.compile(r"(?P<left>[^\W\d_][^\W\d_-]{0,40}(?:-[^\W\d_-]{1,40}){0,3})-\Z")
_AND = frozenset(("og", "eller", "som", "samt", "and", "or", "und", "och", "eller/og", "men"))
_BROKEN_ADDRESS = re.compile(r"https?://\S{4,300}[/=&?_-]\Z")
_ADDRESS = re.compile(r"www\.|://|@")
_LEAST_WIDTH = 0.8  # of the text's width: a narrower block is a title page, a list, a poem
_LEAST_WRAPPED = 3
_AROUND = ".,;:!?«»“”\"'()[]"
_LONGEST_PARAGRAPH = 10_000  # characters; no page has more, and joining costs more with each line
_TAIL = 320  # characters at the end of a text that tell how it ends
_NEW = re.compile(
    r"(?:(?:av|by) [A-ZÆØÅ]\S+(?: [A-ZÆØÅ]\S+){0,4}\Z|(?:av|by|skrevet|posted|publisert|oppdatert) "
    r".{2,80}\d{4}|\d{1,2}(?:\.\d{1,2})*\.?[ \t]{1,3}\S|[–—] |§ ?\d|\(\d|[A-ZÆØÅ][\wæøå]{1,20}: )"
)


def unwrap(lines: list[Line], *, is_print: bool = False) -> list[Line]:
    """The lines with those joined that belong together; `is_print`: a title may be broken anywhere, too."""
    kept = [line for line in lines if line.is_kept]
    width = _width(kept) if _is_wrapped(kept) else 0
    hyphenated = Counter(
        word.strip(_AROUND).casefold() for line in kept if "-" in line.text for word in line.text.split() if "-" in word
    )
    joined: list[Line] = []
    room = last_length = 0
    for position, line in enumerate(kept):
        above = joined[-1] if joined else None
        if above is None or line.has_gap or not _may_join(above, line) or len(above.text) > _LONGEST_PARAGRAPH:
            joined.append(line)
            room, last_length = _room(kept, position), _length(line)
            continue
        is_title = (
            is_print
            and len(joined) == 1
            and line.text[:1].islower()
            and not _ADDRESS.search(line.text)
            and not _ends(above.text)
        )
        if is_title or _belongs(
            above.text[-_TAIL:], line.text, last_length, room if width and room >= _LEAST_WIDTH * width else 0
        ):
            _join(above, line, hyphenated)
        else:
            joined.append(line)
        last_length = _length(line)
    gone = [line for line in lines if not line.is_kept]
    return sorted([*joined, *gone], key=lambda line: line.number)


def _length(line: Line) -> int:
    return line.indent + len(line.source)


def _width(lines: list[Line]) -> int:
    """How wide the text is: most of its long lines end before this."""
    lengths = sorted(_length(line) for line in lines if line.kind not in ("row", "code") and _length(line) >= _SHORTEST)
    return lengths[len(lengths) * 3 // 4] if lengths else 0


def _room(lines: list[Line], position: int) -> int:
    """The width of the block that begins here."""
    widest = _length(lines[position])
    for line in lines[position + 1 : position + 60]:
        if line.has_gap or line.kind in ("row", "code"):
            break
        widest = max(widest, _length(line))
    return widest if widest <= _LONGEST else 0


def _is_wrapped(lines: list[Line]) -> bool:
    """Whether a text is wrapped throughout: many lines go on in lower case, hardly any is long."""
    pairs = goes_on = long = 0
    for above, line in pairwise(lines):
        long += _length(line) > _LONGEST
        if not line.has_gap and above.kind not in ("row", "code") and _length(above) >= _SHORTEST:
            pairs += 1
            goes_on += line.text[:1].islower() and not _ends(above.text)
    return goes_on >= _LEAST_WRAPPED and goes_on >= 0.25 * pairs and long <= 0.1 * len(lines)


def _may_join(above: Line, line: Line) -> bool:
    if above.kind in ("row", "code", "heading") or line.kind in ("row", "code", "heading"):
        return False
    if above.kind == "quote" or line.kind == "quote":
        return above.kind == line.kind and above.level == line.level
    return line.kind == "text" and not above.anchors and not line.anchors


def _belongs(above: str, text: str, length: int, room: int) -> bool:
    """Whether a line goes on in the next; `length` of the last line above, `room` of its block, 0 if not wrapped."""
    is_full = _SHORTEST <= length <= _LONGEST or (room and length >= _LEAST_FULL * room)
    is_address = _has_broken_address(above) and " " not in text.strip(".,;")
    if not (is_full or is_address) or _NEW.match(text):
        return False
    if is_address:
        return True
    if _broken_word(above) and text[:1].islower():
        return True
    if text[:1].islower() and not _ends(above):
        return True
    is_long = room >= _SHORTEST and length >= _LEAST_FULL * room
    return is_long and length + 1 + len(text.partition(" ")[0]) > room


def _ends(text: str) -> bool:
    return text.rstrip(_CLOSING)[-1:] in _ENDS


def _broken_word(text: str) -> re.Match[str] | None:
    return _BROKEN.search(text) if text.endswith("-") else None


def _has_broken_address(text: str) -> bool:
    return "://" in text and _BROKEN_ADDRESS.search(text) is not None


def _join(above: Line, line: Line, hyphenated: Counter[str]) -> None:
    tail = above.text[-_TAIL:]
    if _has_broken_address(tail) and " " not in line.text.strip(".,;"):
        above.change(above.text + line.text, "address joined")
        above.parts += line.sources()
        return
    broken = _broken_word(tail)
    first = line.text.partition(" ")[0] if broken else ""
    if broken and _is_one_word(broken.group("left"), first, hyphenated):
        above.change(above.text[:-1] + line.text, "word joined")
    elif broken and first[:1].islower() and first.strip(".,;:") not in _AND:
        above.change(above.text + line.text, "word joined")
    else:
        above.change(f"{above.text} {line.text}", "lines joined")
    above.note(*line.changes)
    above.parts += line.sources()


def _is_one_word(left: str, right: str, hyphenated: Counter[str]) -> bool:
    """Whether the line's end put the hyphen in: not after an abbreviation or letter, nor where the text has it."""
    right = right.rstrip(".,;:!?»”\")]’'")
    if not right[:1].islower() or right in _AND:
        return False
    last = left.rsplit("-", 1)[-1]
    if len(last) == 1 or last.isupper() or "-" in left:
        return False
    return hyphenated[f"{left}-{right}".casefold()] == 0
