"""A cleaned clip: its Markdown, what was removed and why, and what a model found in it, marked in the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import msgspec
from markupsafe import Markup

from services.admin.views.analysis import Provenance
from services.admin.views.markdown import render_markdown

MOST_MARKED = 200_000  # characters of text that are shown with marks; the rest is in the download
MOST_REMOVED = 2_000  # lines
MOST_MARKS = 2_000
KINDS = ("claim", "fact", "quote", "entity")


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    url: str | None = None
    site: str | None = None
    author: str | None = None
    published: str | None = None
    accessed: str | None = None


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    line: int
    text: str
    reason: str | None = None


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """In code points of the clean text."""

    start: int
    end: int


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    quote: str = ""
    start: int = 0
    end: int = 0


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    subject: str
    predicate: str = ""
    value: str = ""
    unit: str | None = None
    quote: str = ""
    start: int = 0
    end: int = 0


class Quoted(msgspec.Struct, frozen=True, kw_only=True):
    quote: str
    start: int = 0
    end: int = 0


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str = "other"
    spans: list[Span] = []


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    characters: int = 0
    characters_removed: int = 0
    warnings: list[str] = []


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """What the view shows of a result of research_clip."""

    clean_text: str
    markdown: str
    kind: str | None = None
    title: str | None = None
    language: str | None = None
    mode_used: str | None = None
    source: Origin = Origin()
    removed: list[Removed] = []
    summary: str | None = None
    topics: list[str] = []
    entities: list[Entity] = []
    claims: list[Claim] = []
    facts: list[Fact] = []
    quotes: list[Quoted] = []
    quality: Quality = Quality()
    provenance: Provenance | None = None

    @property
    def is_described(self) -> bool:
        """Whether a model has said anything of it."""
        return bool(self.summary or self.claims or self.facts or self.quotes or self.entities)


@dataclass(frozen=True)
class Piece:
    """A run of the text under the same marks; `kinds` empty = unmarked."""

    text: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownClip:
    """`body` is safe HTML; `pieces` the clean text with what was found marked."""

    clip: Clip
    body: Markup
    pieces: list[Piece]
    removed_by_reason: list[tuple[str, list[Removed]]]
    is_cut: bool


def read_clip(result: str) -> ShownClip:
    """The clip in a result.

    Raises:
        msgspec.ValidationError: it is none.
    """
    clip = msgspec.json.decode(result, type=Clip)
    removed = sorted(clip.removed[:MOST_REMOVED], key=lambda item: (item.reason or "", item.line))
    return ShownClip(
        clip,
        render_markdown(clip.markdown[:MOST_MARKED]),
        marked(clip.clean_text[:MOST_MARKED], spans_of(clip)) if clip.is_described else [],
        [(reason, list(items)) for reason, items in groupby(removed, key=lambda item: item.reason or "")],
        max(len(clip.markdown), len(clip.clean_text)) > MOST_MARKED or len(clip.removed) > MOST_REMOVED,
    )


def spans_of(clip: Clip) -> list[tuple[int, int, str]]:
    """Everything that was found in the text, with its kind."""
    found = [(item.start, item.end, "claim") for item in clip.claims]
    found += [(item.start, item.end, "fact") for item in clip.facts]
    found += [(item.start, item.end, "quote") for item in clip.quotes]
    found += [(span.start, span.end, "entity") for item in clip.entities for span in item.spans]
    return found[:MOST_MARKS]


def marked(text: str, spans: Sequence[tuple[int, int, str]]) -> list[Piece]:
    """The text in pieces, cut wherever a mark begins or ends; marks may lie over one another."""
    inside = [(max(start, 0), min(end, len(text)), kind) for start, end, kind in spans]
    inside = [span for span in inside if span[0] < span[1]]
    edges = sorted({0, len(text), *(start for start, _, _ in inside), *(end for _, end, _ in inside)})
    opened: dict[int, list[str]] = {}
    closed: dict[int, list[str]] = {}
    for start, end, kind in inside:
        opened.setdefault(start, []).append(kind)
        closed.setdefault(end, []).append(kind)
    depth = dict.fromkeys(KINDS, 0)
    pieces = []
    for begin, end in pairwise(edges):
        for kind in opened.get(begin, []):
            depth[kind] += 1
        for kind in closed.get(begin, []):
            depth[kind] -= 1
        pieces.append(Piece(text[begin:end], tuple(kind for kind in KINDS if depth[kind])))
    return pieces
