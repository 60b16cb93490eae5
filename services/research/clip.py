"""The result of a job: the clip as JSON, and the way back from it to the paste."""

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from openrouter_client.fence import injection_suspected
from openrouter_client.language import detect
from services.research.addresses import addresses_in, web_address
from services.research.cleaner import Draft, clean
from services.research.credits import Credits, names_of, read_credits
from services.research.dates import find_dates
from services.research.line import Line
from services.research.paste import Clip, Paste
from services.research.rendering import Written, escape, markdown
from services.research.sami import NORTHERN_SAMI, is_northern_sami
from services.research.sites import find_site

SCHEMA_VERSION = 1
MOST_LINKS = 500
_SAMPLE = 50_000
_SEPARATORS = (" | ", " – ", " — ", " - ", " :: ", " · ")


def make_clip(paste: Paste) -> Clip:
    """Cleans a paste and tells everything that was found and done. The fields of a model are empty."""
    with _without_collector():
        return _make_clip(paste)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Lines hold no cycles: the collector would look through all of them again and again, and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _make_clip(paste: Paste) -> Clip:
    draft = clean(paste)
    written = draft.written()
    kept = draft.kept()
    credits = read_credits(draft.lines, draft.title, paste.pasted_at, is_posts=draft.is_posts)
    source = _source(draft, paste, credits)
    title = _title(draft, source["site"])
    sample = _sample(written.text)
    base = source["url"]
    return {
        "schema_version": SCHEMA_VERSION,
        "mode_used": "offline",
        "output_language": None,
        "kind": draft.kind,
        "title": title,
        "source": source,
        "language": NORTHERN_SAMI if is_northern_sami(sample) else detect(sample).language,
        "clean_text": written.text,
        "markdown": markdown(_body(draft, kept), _head(title, source)),
        "blocks": _blocks(kept, written),
        "links": _links(kept, written, base),
        "removed": _removed(draft.lines),
        "changed": _changed(kept, written),
        "summary": None,
        "topics": [],
        "entities": [],
        "claims": [],
        "facts": [],
        "quotes": [],
        "headings": [],
        "ungrounded": [],
        "quality": _quality(draft, written),
        "provenance": None,
    }


def _quality(draft: Draft, written: Written) -> dict[str, Any]:
    return {
        "characters": len(written.text),
        "characters_removed": sum(len(line.source) for line in draft.lines if not line.is_kept),
        "injection_suspected": injection_suspected(written.text),
        "ungrounded": {},
        "warnings": draft.warnings,
    }


def restore_lines(clip: Mapping[str, Any]) -> list[str]:
    """The lines of the paste that held anything, in their order, as they stood there but for white space at their ends.

    Of a page they are the visible lines. Nothing but the clip is needed.
    """
    lines: dict[int, str] = {item["line"]: item["text"] for item in clip["removed"]}
    text = clip["clean_text"]
    for block in clip["blocks"]:
        lines[block["line"]] = text[block["start"] : block["end"]]
    for item in clip["changed"]:
        lines.update(zip(item["lines"], item["original"], strict=True))
    return [lines[number].strip() for number in sorted(lines) if lines[number].strip()]


def _sample(text: str) -> str:
    """Enough of a text to tell its language: its beginning and its middle."""
    middle = len(text) // 2
    return text if len(text) <= 2 * _SAMPLE else f"{text[:_SAMPLE]}\n{text[middle : middle + _SAMPLE]}"


def _title(draft: Draft, site: str | None) -> str | None:
    if draft.mail is not None:
        return draft.mail.subject
    if draft.fields.get("title"):
        return draft.fields["title"]
    if draft.title is not None:
        return draft.title.text
    return _without_site(draft.head.title, site)


def _without_site(title: str | None, site: str | None) -> str | None:
    """A page's own title without the name of the site behind it."""
    if title is None:
        return None
    for sign in _SEPARATORS:
        name, found, last = title.rpartition(sign)
        if found and site is not None and last.casefold() == site.casefold():
            return name
    return title


def _source(draft: Draft, paste: Paste, credits: Credits) -> dict[str, str | None]:
    head, mail, fields = draft.head, draft.mail, draft.fields
    address = web_address(paste.source_url or "", None) or web_address(head.address or "", None)
    published = (
        _day(mail.sent if mail else None, paste)
        or _day(fields.get("date") or fields.get("published") or fields.get("dato"), paste)
        or _day(head.published, paste)
        or credits.published
        or _day(head.modified, paste)
    )
    return {
        "url": address or web_address(fields.get("url") or fields.get("source") or "", None),
        "site": head.site or fields.get("site") or _site(draft, address) or _site_of_title(draft),
        "author": (mail.sender if mail else None)
        or names_of(fields.get("author") or fields.get("forfatter"))
        or credits.author
        or names_of(head.author),
        "published": published,
        "updated": credits.updated if credits.updated != published else None,
        "accessed": paste.pasted_at.isoformat() if paste.pasted_at else None,
    }


def _site(draft: Draft, address: str | None) -> str | None:
    if draft.mail is not None:
        return None
    host = urlsplit(address).hostname or "" if address else ""
    return find_site(draft.lines, _place(draft), host)


def _site_of_title(draft: Draft) -> str | None:
    """What stands behind the heading in the page's own title."""
    title, heading = draft.head.title, draft.title
    if title is None or heading is None or not title.startswith(heading.text[:60]):
        return None
    rest = title[len(heading.text) :].strip()
    return rest.lstrip("|–—-:· ").strip() or None


def _place(draft: Draft) -> int | None:
    return next((position for position, line in enumerate(draft.lines) if line is draft.title), None)


def _day(text: str | None, paste: Paste) -> str | None:
    if not text:
        return None
    found = find_dates(text, paste.pasted_at, takes_loose=True)
    return found[0].iso if found else None


def _body(draft: Draft, kept: Sequence[Line]) -> list[Line]:
    """The lines below the Markdown's own heading: all but the title."""
    return [line for line in kept if line is not draft.title]


def _head(title: str | None, source: Mapping[str, str | None]) -> str:
    """Title and source, as the first lines of the Markdown."""
    site, url = source["site"], source["url"]
    place = f"[{escape(site or url)}]({url})" if url else escape(site or "")
    told = [escape(source["author"] or ""), source["published"] or "", place]
    line = " · ".join(part for part in told if part)
    return "\n\n".join(
        part for part in (f"# {escape(title).lstrip(chr(92))}" if title else "", f"*{line}*" if line else "") if part
    )


def _blocks(kept: Sequence[Line], written: Written) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for line, (start, end) in zip(kept, written.spans, strict=True):
        block: dict[str, Any] = {"kind": line.kind, "start": start, "end": end, "line": line.number}
        if line.level and line.kind in ("heading", "quote", "item"):
            block["level"] = line.level
        blocks.append(block)
    return blocks


def _links(kept: Sequence[Line], written: Written, base: str | None) -> list[dict[str, Any]]:
    """The links of the text, each where it stands; an address that stands in the text is its own words."""
    links: list[dict[str, Any]] = []
    for line, (start, _) in zip(kept, written.spans, strict=True):
        found = [(anchor.start, anchor.end, web_address(anchor.url, base)) for anchor in line.anchors]
        found += [(begin, end, line.text[begin:end]) for begin, end in addresses_in(line.text)]
        for begin, end, url in sorted(found):
            if url is not None and end <= len(line.text) and len(links) < MOST_LINKS:
                links.append({"url": url, "text": line.text[begin:end], "start": start + begin, "end": start + end})
    return links


def _removed(lines: Sequence[Line]) -> list[dict[str, Any]]:
    return [
        {"line": number, "text": source, "reason": line.reason}
        for line in lines
        if not line.is_kept
        for number, source in line.sources()
    ]


def _changed(kept: Sequence[Line], written: Written) -> list[dict[str, Any]]:
    changed: list[dict[str, Any]] = []
    for line, (start, end) in zip(kept, written.spans, strict=True):
        sources = sorted(line.sources())
        if len(sources) > 1 or sources[0][1] != line.text:
            changed.append(
                {
                    "lines": [number for number, _ in sources],
                    "original": [source for _, source in sources],
                    "how": line.changes or ("signs and white space",),
                    "start": start,
                    "end": end,
                }
            )
    return changed
