"""Stage A: from a paste to a clean, structured clip. Deterministic, without a network and without a model.

One pass reads the paste, takes out what is none of the matter and mends what layout and transport broke. Passes are
repeated on their own result until nothing changes, so that cleaning a clean text changes nothing. Every line that went
and every text that was changed is kept with its reason.
"""

from dataclasses import dataclass, field
from datetime import datetime

from services.research.characters import BIDI, sound
from services.research.code_blocks import mark_code
from services.research.consents import remove_consent
from services.research.credits import remove_credits
from services.research.duplicates import remove_duplicates
from services.research.headings import mark_headings
from services.research.inline import mend_inline
from services.research.judgement import forget
from services.research.kinds import PasteKind, kind_of_page, kind_of_text
from services.research.line import Line
from services.research.mails import MailHead, read_mail_head
from services.research.markdown_source import read_markdown
from services.research.page_head import PageHead, read_head
from services.research.pages import Unparsed, parse_page, read_page
from services.research.paste import Paste, as_text
from services.research.plain_text import read_plain, split_lines
from services.research.print_furniture import remove_print_furniture
from services.research.rendering import Written, clean_text
from services.research.sections import remove_boxes, remove_contacts, remove_sections
from services.research.sheet import Sheet, read_sheet
from services.research.signatures import remove_counters, remove_signatures
from services.research.surroundings import (
    body_start,
    first_matter,
    is_below_matter,
    remove_enclosed,
    remove_head,
    remove_islands,
    remove_labels,
    remove_tail,
)
from services.research.titles import find_title
from services.research.unwrapping import unwrap

_NOT_RESTORED = ("fence", "rule", "picture", "empty quotation", "invisible characters")
MOST_PASSES = 8
_LEAST_SHARE = 0.4  # of the text's letters: a page that gives less than this beside its own plain text is mistrusted


@dataclass
class Draft:
    """A paste on its way to a clip."""

    kind: PasteKind
    lines: list[Line]
    title: Line | None = None
    mail: MailHead | None = None
    head: PageHead = field(default_factory=PageHead)
    fields: dict[str, str] = field(default_factory=dict)  # of a Markdown text's front matter
    is_posts: bool = False
    warnings: list[str] = field(default_factory=list)

    def kept(self) -> list[Line]:
        return [line for line in self.lines if line.is_kept]

    def written(self) -> Written:
        return clean_text(self.kept())


def clean(paste: Paste) -> Draft:
    """Cleans a paste until cleaning changes nothing more."""
    try:
        return _settle(paste)
    finally:
        forget()


def _settle(paste: Paste) -> Draft:
    draft, read = _first_pass(paste)
    text = draft.written().text
    if read is not None and kind_of_text(text) == draft.kind and _reads_the_same(read, text):
        return draft
    for _ in range(MOST_PASSES):
        again = _pass(_read(text), paste.pasted_at)
        if again.written().text == text:
            return draft
        _take_over(draft, again, text)
        del again
        text = draft.written().text
    draft.warnings.append("not_settled")
    return draft


def _first_pass(paste: Paste) -> tuple[Draft, str | None]:
    """The draft, and the plain text that it was made of; None of a page."""
    text = sound(as_text(paste.text))
    if paste.html is None or not paste.html.strip():
        draft = _pass(_read(text), paste.pasted_at)
        return draft, text if draft.kind in ("plain", "pdf") else None
    draft = _pass(_read_page(sound(as_text(paste.html))), paste.pasted_at)
    if text.strip():
        other = _pass(_read(text), paste.pasted_at)
        if _letters(draft) < _LEAST_SHARE * _letters(other):
            other.warnings.append("html_left_out")
            return other, None
    return draft, None


def _reads_the_same(one: str, other: str) -> bool:
    """Whether two texts differ at most in blanks at the ends of lines, and below the last, which nobody looks at."""
    rows, others = split_lines(one.rstrip(" \t\r\n")), other.split("\n")
    return len(rows) == len(others) and all(row.rstrip(" \t") == own for row, own in zip(rows, others, strict=True))


def _letters(draft: Draft) -> int:
    return sum(len(line.text) for line in draft.kept())


def _read(text: str) -> Draft:
    kind = kind_of_text(text)
    if kind in ("html", "fragment"):
        return _read_page(text)
    if kind == "markdown":
        source = read_markdown(text)
        return Draft(kind, source.lines, fields=source.fields)
    return Draft(kind, read_plain(text), warnings=["direction_marks_removed"] if BIDI.search(text) else [])


def _read_page(html: str) -> Draft:
    kind, tree = kind_of_page(html), parse_page(html)
    if isinstance(tree, Unparsed):
        return Draft(kind, read_plain(tree.text), warnings=[tree.problem])
    del html  # as large as all that is read from it
    lines = read_page(tree)
    return Draft(kind, lines, head=read_head(tree.parser) if lines else PageHead())


def _pass(draft: Draft, pasted_at: datetime | None) -> Draft:
    """Takes out and mends, in the order in which one step helps the next."""
    if draft.kind == "pdf":
        remove_print_furniture(draft.lines)
    if draft.kind in ("plain", "pdf"):
        mark_code(draft.lines)
        draft.lines = unwrap(draft.lines, is_print=draft.kind == "pdf")
    mend_inline(draft.lines)
    draft.mail = read_mail_head(draft.lines)
    sheet = read_sheet(draft.lines)
    if draft.mail is not None:
        _keep_mail_head(sheet, draft.mail)
    draft.is_posts = sheet.is_posts
    for step in (remove_consent, remove_sections, remove_boxes, remove_contacts, remove_signatures, remove_counters):
        step(sheet)
    _remove_around(sheet, draft)
    remove_duplicates(draft.lines)
    if not any(line.is_kept for line in draft.lines):
        _keep_something(draft)
    mark_headings(draft.kept())
    return draft


def _remove_around(sheet: Sheet, draft: Draft) -> None:
    begin = first_matter(sheet)
    place = None if draft.mail is not None else find_title(sheet, begin, body_start(sheet, begin), draft.head.title)
    if place is not None and is_below_matter(sheet, place):
        place = None
    remove_enclosed(sheet, place)
    if place is not None:
        draft.title = sheet.lines[place]
        remove_head(sheet, place)
        if sheet.is_page:
            remove_labels(sheet, place + 1, begin if begin is not None and begin > place else place + 1)
    elif begin is not None and sheet.is_page:
        remove_labels(sheet, 0, begin)
    remove_tail(sheet)
    if draft.kind != "pdf":  # in print, headings stand apart
        remove_islands(sheet, begin if begin is not None else len(sheet.lines))
    remove_credits(draft.lines, draft.title)


def _keep_mail_head(sheet: Sheet, mail: MailHead) -> None:
    for position in mail.positions:
        sheet.lines[position].reason = None
    for position in range(mail.positions[0]):
        sheet.lines[position].remove("before the mail")


def _keep_something(draft: Draft) -> None:
    """A paste of nothing but a page's furniture stays: it is not for the cleaner to empty it."""
    restored = [line for line in draft.lines if line.reason not in _NOT_RESTORED]
    for line in restored:
        line.reason = None
    if restored:
        draft.warnings.append("only_furniture")


def _take_over(draft: Draft, again: Draft, text: str) -> None:
    """Brings what a further pass did to the text back to the lines of the paste."""
    owners: dict[int, Line] = {}
    written = draft.written()
    number, position = 1, 0
    for line, (start, _) in zip(draft.kept(), written.spans, strict=True):
        number += text.count("\n", position, start)
        position = start
        owners[number] = line
    for line in again.lines:
        mine = [owners[found] for found, _ in line.sources() if found in owners]
        if not mine:
            continue
        first = mine[0]
        if not line.is_kept:
            for one in mine:
                one.remove(line.reason or "rule", is_strong=line.is_strong)
            continue
        for one in mine[1:]:
            first.parts += one.sources()
            one.reason = "joined"
        if line.text != first.text:
            first.anchors = ()
            for how in line.changes or ("text mended",):
                first.change(line.text, how)
            first.text = line.text
        if not (first.kind == "heading" and line.kind in ("text", "item")):
            first.kind, first.level = line.kind, line.level
        first.has_gap = line.has_gap
    draft.lines = [line for line in draft.lines if line.reason != "joined"]
