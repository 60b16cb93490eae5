"""One walk through a page's tree, without recursion: from elements to lines, with links, lists, tables and zones."""

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from services.research.line import Anchor, Line, require_room
from services.research.markup_zones import Zone, zone_of

_SKIPPED_NAMES = (
    "script style head template noscript svg iframe object canvas audio video select textarea math datalist map"
)
_SKIPPED = frozenset(_SKIPPED_NAMES.split())
_BLOCK_NAMES = (
    "address article aside blockquote body br button caption center dd details dialog div dl dt fieldset "
    "figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol p pre section summary table "
    "tbody tfoot thead "
    "tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_WHITE = re.compile(r"[ \t\n\r\f\v]+")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MOST_SHARE = 0.4  # of a page's sentences: more than this is no zone beside the text


@dataclass
class _Open:
    """An element whose end is waited for."""

    tag: str
    zone: bool = False
    href: bool = False
    row: bool = False


class PageWalk:
    """One walk through the tree, in the order of the text."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._zones: tuple[Zone, ...] = ()
        self._line_zones: list[tuple[Zone, ...]] = []
        self._zone_count = 0
        self._text: list[str] = []
        self._length = 0
        self._linked = 0
        self._href: str | None = None
        self._anchors: list[Anchor] = []
        self._heading = self._quote = self._code = self._cells = 0
        self._lists: list[int] = []  # of the lists that are open: the number of the next item, 0 for a bullet
        self._prefix = ""
        self._has_gap = True
        self._boxes = [0, 0]  # numbers of the blocks that are open
        self._box_count = 0
        self._is_inside_article = False

    def run(self, root: LexborNode) -> None:
        """Walks from the root to the end."""
        node: LexborNode | None = root
        open_elements: list[_Open | None] = []
        while node is not None:
            entered = self._enter(node)
            child = node.child if entered is not None else None
            if child is not None:
                open_elements.append(entered)
                node = child
                continue
            if entered is not None:
                self._leave(entered)
            while node is not None and node.next is None:
                node = node.parent
                if not open_elements:
                    node = None
                    break
                self._leave(open_elements.pop())
            node = node.next if node is not None else None
        self._flush()

    def drop_doubtful_zones(self) -> None:
        """Gives each line the zone that holds, if any."""
        sentences: dict[int, int] = {}
        titled: set[int] = set()
        total = 0
        for line, zones in zip(self.lines, self._line_zones, strict=True):
            weight = len(line.text) if len(line.text) > 60 and line.text.rstrip("»”\"')")[-1:] in ".!?:" else 0
            total += weight
            for zone in zones:
                sentences[zone.id] = sentences.get(zone.id, 0) + weight
                if line.kind == "heading" and line.level == 1:
                    titled.add(zone.id)
        for line, zones in zip(self.lines, self._line_zones, strict=True):
            for zone in zones:
                is_most = total > 0 and sentences[zone.id] > _MOST_SHARE * total
                if (zone.is_certain and not is_most) or not (is_most or zone.id in titled):
                    line.zone = zone.name
                    break

    def _enter(self, node: LexborNode) -> _Open | None:
        tag = node.tag
        if tag == "-text":
            self._add(node.text_content or "")
            return None
        if tag is None or tag in _SKIPPED or tag[0] in "-_!":
            return None
        attributes = node.attributes
        if "hidden" in attributes or _HIDDEN.search(attributes.get("style") or ""):
            return None
        if tag in _BLOCKS:
            self._break(has_gap=tag not in ("br", "tr", "li", "tbody", "button"))
            if tag != "br":
                self._box_count += 1
                self._boxes.append(self._box_count)
        opened = _Open(tag)
        if attributes or tag in ("nav", "footer", "aside", "header", "form", "button", "menu", "dialog"):
            self._open_zone(tag, attributes, opened)
        self._open_meaning(tag, attributes, opened)
        return opened

    def _open_zone(self, tag: str, attributes: dict[str, str | None], opened: _Open) -> None:
        found = zone_of(tag, attributes, is_in_heading=bool(self._heading))
        if found is not None and not (tag == "header" and self._is_inside_article):
            self._zone_count += 1
            self._zones = (*self._zones, Zone(self._zone_count, *found))
            opened.zone = True

    def _open_meaning(self, tag: str, attributes: dict[str, str | None], opened: _Open) -> None:
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "blockquote":
            self._quote += 1
        elif tag == "pre":
            self._code += 1
        elif tag == "tr":
            opened.row = True
            self._cells += 1
        elif tag in ("td", "th") and self._cells and self._length:
            self._put("\t")
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else 0)
        elif tag == "li":
            self._prefix = self._next_item()
        elif tag in ("article", "main"):
            self._is_inside_article = True
        elif tag == "a" and (href := (attributes.get("href") or "").strip()) and self._href is None:
            self._href = href
            self._anchors.append(Anchor(self._length, -1, href))
            opened.href = True

    def _next_item(self) -> str:
        number = self._lists[-1] if self._lists else 0
        if number:
            self._lists[-1] += 1
        indent = "  " * min(max(len(self._lists) - 1, 0), 6)
        return f"{indent}{number}. " if number else f"{indent}- "

    def _leave(self, opened: _Open | None) -> None:
        if opened is None:
            return
        tag = opened.tag
        if tag in _BLOCKS and tag != "br":
            self._break(has_gap=tag not in ("tr", "li", "button", "tbody"))
            self._boxes.pop()
        if opened.zone:
            self._zones = self._zones[:-1]
        if opened.href:
            self._end_link()
            self._href = None
        if opened.row:
            self._cells -= 1
        if tag in _HEADINGS:
            self._heading = 0
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag in ("article", "main"):
            self._is_inside_article = False
        self._quote -= tag == "blockquote"
        self._code -= tag == "pre"

    def _break(self, *, has_gap: bool) -> None:
        """A block begins or ends. Inside a table's row it is a blank."""
        if self._cells and self._length:
            self._put(" ")
        elif not self._cells or not self._length:
            self._flush()
        self._has_gap = self._has_gap or (has_gap and not self._cells)

    def _add(self, text: str) -> None:
        if self._code:
            for position, row in enumerate(text.replace("\r\n", "\n").split("\n")):
                if position:
                    self._flush()
                self._put(row)
            return
        self._put(_WHITE.sub(" ", text))

    def _put(self, piece: str) -> None:
        if not self._code and (not self._length or self._text[-1][-1:] in " \t"):
            piece = piece.lstrip(" ")
        if piece:
            self._text.append(piece)
            self._length += len(piece)
            if self._href is not None:
                self._linked += len(piece)

    def _end_link(self) -> None:
        for position, anchor in enumerate(self._anchors):
            if anchor.end < 0:
                self._anchors[position] = Anchor(anchor.start, self._length, anchor.url)

    def _flush(self) -> None:
        if self._length and (self._code or not "".join(self._text).isspace()):
            self._end_link()
            self._emit()
        self._text.clear()
        self._anchors.clear()
        self._length = self._linked = 0
        if self._href is not None:
            self._anchors.append(Anchor(0, -1, self._href))

    def _emit(self) -> None:
        text = "".join(self._text).rstrip()
        cells = [cell.strip() for cell in text.split("\t")] if not self._code else [text]
        line = Line(len(self.lines) + 1, "", text, has_gap=self._has_gap)
        line.box = self._boxes[-2]
        line.is_link = self._linked >= 0.9 * self._length
        if self._code:
            line.kind = "code"
        elif len(cells) > 1:
            line.text, line.kind = "\t".join(cells), "row"
        elif self._heading:
            line.kind, line.level = "heading", self._heading
        elif self._quote:
            line.kind, line.level = "quote", min(self._quote, 6)
        line.source = line.text.strip()
        line.anchors = tuple(anchor for anchor in self._anchors if anchor.end > anchor.start and line.kind != "row")
        if self._prefix and line.kind in ("text", "quote"):
            self._make_item(line)
        self.lines.append(line)
        require_room(self.lines)
        self._line_zones.append(self._zones)
        self._has_gap = False

    def _make_item(self, line: Line) -> None:
        sign = self._prefix.lstrip()
        line.kind, line.level = "item", (len(self._prefix) - len(sign)) // 2
        line.text = sign + line.text
        line.anchors = tuple(Anchor(link.start + len(sign), link.end + len(sign), link.url) for link in line.anchors)
        self._prefix = ""
