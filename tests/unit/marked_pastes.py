"""The corpus of marked pastes under tests/research_corpus, for tests and measurements of the cleaner.

The README there says what a paste folder holds and how its lines are marked. Nothing here knows a rule of the cleaner.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent.parent / "research_corpus"
LISTS = {"frozen": "FROZEN.txt", "blind": "BLIND.txt"}
MARKS = {"B": "body", "X": "boilerplate", "T": "title", "A": "by-line", "D": "date or source", "E": "not judged"}
LINE_BREAK = re.compile(r"\r\n|[\n\r\f\v\u2028\u2029]")
BLOCK_TAGS = {
    "address", "article", "aside", "blockquote", "body", "br", "button", "caption", "dd", "details", "dialog",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hr", "html", "label", "legend", "li", "main", "nav", "ol", "p", "pre", "section", "summary",
    "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
CELL_TAGS = {"td", "th"}
UNSEEN_TAGS = {
    "audio", "canvas", "head", "iframe", "noscript", "object", "script", "select", "style", "svg", "template",
    "textarea", "video",
}  # fmt: skip
VOID_TAGS = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
}  # fmt: skip


@dataclass(frozen=True)
class MarkedLine:
    """One visible line: its mark, its text with white space folded, and the text its author meant."""

    mark: str
    text: str
    meant: str


@dataclass(frozen=True)
class Paste:
    """One folder of the corpus; `part` is frozen, rest or blind."""

    name: str
    content: str
    is_html: bool
    lines: tuple[MarkedLine, ...]
    expected: dict[str, Any]
    part: str

    def marked(self, marks: str) -> list[MarkedLine]:
        """The lines with one of these marks, in order."""
        return [line for line in self.lines if line.mark in marks]


@cache
def all_pastes() -> tuple[Paste, ...]:
    """Every paste, in the order of its folder's name."""
    return tuple(load_paste(folder) for folder in sorted(CORPUS.iterdir()) if folder.is_dir())


def load_paste(folder: Path) -> Paste:
    """Read one folder. Raises: ValueError when it has no paste, or a line of marks.txt that is not in its form."""
    sources = sorted(folder.glob("paste.*"))
    if [source.suffix for source in sources] not in ([".txt"], [".html"]):
        raise ValueError(f"{folder.name}: expected one paste.txt or paste.html, found {sources}")
    return Paste(
        name=folder.name,
        content=sources[0].read_bytes().decode("utf-8"),
        is_html=sources[0].suffix == ".html",
        lines=tuple(read_marks(folder / "marks.txt")),
        expected=tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8")),
        part=next((part for part in LISTS if folder.name in listed_files(part)), "rest"),
    )


def read_marks(file: Path) -> list[MarkedLine]:
    """Lines of `M text`; a line of `= text` below one says what was meant, where the paste itself has it garbled."""
    marked: list[MarkedLine] = []
    for number, line in enumerate(file.read_bytes().decode("utf-8").split("\n"), start=1):
        mark, text = line[:1], line[2:]
        if line and (line[1:2] != " " or mark not in {*MARKS, "="}):
            raise ValueError(f"{file.parent.name}/marks.txt:{number}: {line!r} does not start with a mark and a space")
        if mark == "=":
            marked[-1] = MarkedLine(marked[-1].mark, marked[-1].text, text)
        elif line:
            marked.append(MarkedLine(mark, text, text))
    return marked


@cache
def listed_files(part: str) -> dict[str, dict[str, str]]:
    """Folder -> file -> sha256, of one of the lists, whose form is that of `sha256sum`."""
    found: dict[str, dict[str, str]] = {}
    for line in (CORPUS / LISTS[part]).read_text(encoding="ascii").splitlines():
        digest, path = line.split("  ")
        folder, name = path.split("/")
        found.setdefault(folder, {})[name] = digest
    return found


def visible_lines(content: str, is_html: bool) -> list[str]:
    """The lines a reader sees, white space folded, lines without any visible character left out."""
    if is_html:
        reader = VisibleText()
        reader.feed(content)
        reader.close()
        content = "".join(reader.parts)
    folded = (fold(line) for line in LINE_BREAK.split(content))
    return [line for line in folded if any(character.isprintable() and character != " " for character in line)]


def fold(text: str) -> str:
    """One space for each run of white space, none at the ends."""
    return " ".join(text.split())


class VisibleText(HTMLParser):
    """Text of a page with a line break at each block, a space at each cell, and nothing that is not shown."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.unseen: list[str] = []  # open tags from the first one that hides its content
        self.open_pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        hides = tag in UNSEEN_TAGS or any(
            name == "hidden" or (name == "style" and "display:none" in (value or "").replace(" ", ""))
            for name, value in attrs
        )
        if (self.unseen or hides) and tag not in VOID_TAGS:
            self.unseen.append(tag)
        self.open_pre += tag == "pre"
        self.separate(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.unseen:
            while self.unseen.pop() != tag:
                pass
        self.open_pre -= tag == "pre"
        self.separate(tag)

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.parts.append(data if self.open_pre else re.sub(r"[ \t\r\n\f]+", " ", data))

    def separate(self, tag: str) -> None:
        if tag in BLOCK_TAGS:
            self.parts.append("\n")
        elif tag in CELL_TAGS:
            self.parts.append(" ")


def squash(text: str) -> str:
    """Letters and digits only, in lower case: the same for a line before and after unwrapping."""
    return "".join(character for character in text.casefold() if character.isalnum())
