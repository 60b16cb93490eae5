"""Text from the database, made safe for a terminal and measured in its columns.

Payloads, notes and error messages come from anywhere. A control character in them could clear the screen, forge a
line or reverse what follows, so every such character is shown as its escape (`\\x1b`) and never sent.
"""

import re
import unicodedata

# Controls, marks that reverse or hide text, separators that some terminals take as a new line, lone surrogates.
# The zero-width joiners stay: emoji and some scripts need them.
UNSAFE = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_UNSAFE = re.compile(UNSAFE)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
# A cell of one column must not carry a thousand accents.
_CHARACTERS_PER_COLUMN = 8


def neutral(text: str) -> str:
    """One line in which nothing is left that a terminal would obey."""
    return _UNSAFE.sub(_escape, text)


def neutral_lines(text: str) -> list[str]:
    """The lines of a text, each safe for a terminal; tabs become spaces."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [neutral(line.expandtabs(4)) for line in lines]


def first_line(text: str) -> str:
    """The first line that says something, safe for a terminal."""
    for line in text.splitlines():
        if line.strip():
            return neutral(line.strip())
    return ""


def columns(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_character_columns(character) for character in text)


def cut(text: str, width: int) -> str:
    """The text in at most this many columns, an ellipsis where something was left out."""
    if len(text) <= width * _CHARACTERS_PER_COLUMN and columns(text) <= width:
        return text
    if width < 1:
        return ""
    kept: list[str] = []
    room = width - 1
    for character in text[: width * _CHARACTERS_PER_COLUMN]:
        room -= _character_columns(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with spaces to this many columns, on the left if it is to stand at the right."""
    filling = " " * max(0, width - columns(text))
    return filling + text if right else text + filling


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in _NAMED:
        return _NAMED[character]
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _character_columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
