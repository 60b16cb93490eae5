"""Reads Markdown into lines: its signs become kinds of lines and links, and leave the text."""

import re
from dataclasses import dataclass, field

from services.research.line import Anchor, Line
from services.research.plain_text import read_plain

_FRONT_MATTER = re.compile(r"([\w-]{1,40}):\s*(.*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_UNDERLINE = re.compile(r"(=+|-{2,})$")
_RULE = re.compile(r"(?:[-*_] ?){3,}$")
_TABLE_RULE = re.compile(r"\|?(?: ?:?-+:? ?\|)+ ?:?-*:? ?\|?$")
_LINK = re.compile(
    r"(!?)\[([^\[\]]{0,500})\]\(\s*<?([^\s()<>]{1,2000}(?:\([^\s()]{0,200}\)[^\s()<>]{0,2000})?)>?(?:\s+\"[^\"]{0,300}\")?\s*\)"
)
_AUTO_LINK = re.compile(r"<(https?://[^\s<>]{1,2000})>")
_EMPHASIS = re.compile(
    r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]{1,1000}?)(?<=[^\s*])\1(?![\w*])"
    r"|(?<![\w_])(_{1,3})(?=[^\s_])([^_\n]{1,1000}?)(?<=[^\s_])\3(?![\w_])"
    r"|~~([^~\n]{1,1000})~~|`([^`\n]{1,1000})`"
)
_BRACKETS = "\\`*_{}[]()#+-.!|<>~"
_ESCAPE = re.compile(r"\\([" + re.escape(_BRACKETS) + r"])")


@dataclass
class MarkdownText:
    """What was read of a Markdown text."""

    lines: list[Line]
    fields: dict[str, str] = field(default_factory=dict)  # of the front matter, names in lower case


def read_markdown(text: str) -> MarkdownText:
    """The lines of a Markdown text, without its signs."""
    read = MarkdownText(read_plain(text))
    lines = read.lines
    begin = _read_front_matter(read)
    is_table = False
    for position in range(begin, len(lines)):
        line = lines[position]
        if line.kind == "code" or not line.is_kept:
            continue
        if line.kind in ("text", "item") and _RULE.match(line.source) and not line.has_gap and position > begin:
            _underline(line, lines[position - 1])
        if line.is_kept:
            is_table = _read_block(line, is_table=is_table and not line.has_gap)
            _read_spans(line)
    return read


def _read_front_matter(read: MarkdownText) -> int:
    lines = read.lines
    if not lines or lines[0].source != "---":
        return 0
    for position, line in enumerate(lines[1:80], start=1):
        if line.source == "---":
            for inner in lines[: position + 1]:
                inner.remove("front matter")
            return position + 1
        if found := _FRONT_MATTER.fullmatch(line.source):
            read.fields[found.group(1).lower()] = found.group(2).strip().strip("\"'").strip()
    return 0


def _underline(line: Line, above: Line) -> None:
    """A heading in the older form: a line of = or - below it."""
    if above.kind == "text" and above.is_kept and _UNDERLINE.match(line.source):
        above.kind, above.level = "heading", 1 if line.source[0] == "=" else 2
        line.remove("rule")


def _read_block(line: Line, *, is_table: bool) -> bool:
    """Reads what stands at the start of a line; returns whether the table goes on."""
    source = line.source
    if found := _HEADING.match(line.text):
        line.kind, line.level = "heading", len(found.group(1))
        line.text = found.group(2)
        return False
    if _TABLE_RULE.match(source) and "-" in source:
        line.remove("rule")
        return True
    if source.startswith("|") or (is_table and "|" in source):
        cells = [cell.strip() for cell in source.strip("|").split("|")]
        line.kind, line.text = "row", "\t".join(cells)
        return True
    if _RULE.match(source):
        line.remove("rule")
    return False


def _read_spans(line: Line) -> None:
    """Links and emphasis inside a line."""
    text = line.text
    if "](" in text or "<http" in text:
        _read_links(line)
    if any(sign in line.text for sign in "*_~`\\"):
        plain = _ESCAPE.sub(r"\1", _EMPHASIS.sub(_inner, line.text))
        if plain != line.text:
            line.anchors = _found_again(line.anchors, line.text, plain)
            line.text = plain


def _read_links(line: Line) -> None:
    pieces: list[str] = []
    anchors: list[Anchor] = []
    length = position = 0
    text = _AUTO_LINK.sub(r"\1", line.text)
    linked = 0
    for found in _LINK.finditer(text):
        between = text[position : found.start()]
        is_image, words, url = found.groups()
        shown = words.strip("*_ ") if is_image else words
        pieces += [between, shown]
        length += len(between)
        if not is_image and shown:
            anchors.append(Anchor(length, length + len(shown), url))
        length += len(shown)
        linked += len(shown)
        position = found.end()
    pieces.append(text[position:])
    line.text = "".join(pieces)
    line.anchors = tuple(anchors)
    letters = sum(map(str.isalnum, line.text))
    line.is_link = bool(letters) and linked >= 0.8 * letters
    if not line.text.strip():
        line.remove("picture")


def _inner(found: re.Match[str]) -> str:
    return next(
        group for group in (found.group(2), found.group(4), found.group(5), found.group(6)) if group is not None
    )


def _found_again(anchors: tuple[Anchor, ...], before: str, after: str) -> tuple[Anchor, ...]:
    """Links whose words moved when signs left the text."""
    moved, position = [], 0
    for anchor in anchors:
        words = _ESCAPE.sub(r"\1", _EMPHASIS.sub(_inner, before[anchor.start : anchor.end]))
        start = after.find(words, position)
        if start >= 0:
            position = start + len(words)
            moved.append(Anchor(start, position, anchor.url))
    return tuple(moved)
