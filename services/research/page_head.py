"""What a page's head says about it: title, site, author, date, address, language."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from selectolax.lexbor import LexborHTMLParser

_MOST_METAS, _MOST_SCRIPTS, _MOST_JSON = 300, 20, 300_000
_MOST_NODES = 5000
_TITLE_NAMES = ("og:title", "twitter:title", "dc.title", "citation_title")
_SITE_NAMES = ("og:site_name", "application-name", "dc.publisher", "citation_journal_title")
_AUTHOR_NAMES = ("author", "article:author", "dc.creator", "citation_author", "parsely-author", "byl")
_PUBLISHED_NAMES = (
    *("article:published_time", "datepublished", "date", "dc.date", "dcterms.created", "dcterms.issued", "pubdate"),
    *("citation_publication_date", "citation_date", "parsely-pub-date", "sailthru.date", "dcterms.date"),
)
_MODIFIED_NAMES = (
    "article:modified_time",
    "og:updated_time",
    "last-modified",
    "dcterms.modified",
    "datemodified",
    "revised",
)
_LANGUAGE = re.compile(r"[a-z]{2}", re.IGNORECASE)


@dataclass(frozen=True)
class PageHead:
    """All that is known; None where the page is silent."""

    title: str | None = None
    site: str | None = None
    author: str | None = None
    published: str | None = None
    modified: str | None = None
    address: str | None = None


def read_head(parser: LexborHTMLParser) -> PageHead:
    """Reads meta elements, JSON-LD, canonical link and the first time element."""
    metas = _metas(parser)
    data = list(_linked_data(parser))
    return PageHead(
        title=_first(metas, _TITLE_NAMES) or _text(parser, "head > title"),
        site=_first(metas, _SITE_NAMES) or _named(data, "publisher"),
        author=_plain(_first(metas, _AUTHOR_NAMES))
        or _named(data, "author")
        or _text(parser, "a[rel=author], [itemprop=author]"),
        published=_first(metas, _PUBLISHED_NAMES)
        or _value(data, "datePublished")
        or _attribute(parser, "time[datetime]", "datetime"),
        modified=_first(metas, _MODIFIED_NAMES) or _value(data, "dateModified"),
        address=_attribute(parser, "link[rel=canonical]", "href") or metas.get("og:url"),
    )


def _metas(parser: LexborHTMLParser) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in parser.css("meta")[:_MOST_METAS]:
        attributes = node.attributes
        name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        content = " ".join((attributes.get("content") or "").split())
        if name and content:
            found.setdefault(name.lower(), content[:500])
    return found


def _linked_data(parser: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    """The objects of JSON-LD scripts, the outer ones first."""
    size = 0
    for node in parser.css("script[type='application/ld+json']")[:_MOST_SCRIPTS]:
        text = node.text() or ""
        size += len(text)
        if size > _MOST_JSON:
            return
        try:
            waiting = [json.loads(text)]
        except (ValueError, RecursionError):
            continue
        for _ in range(_MOST_NODES):
            if not waiting:
                break
            value = waiting.pop(0)
            if isinstance(value, dict):
                yield value
                waiting += [value[key] for key in ("@graph", "mainEntity") if isinstance(value.get(key), dict | list)]
            elif isinstance(value, list):
                waiting += value[:100]


def _first(metas: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((metas[name] for name in names if name in metas), None)


def _plain(author: str | None) -> str | None:
    """An author's name; some pages give the address of a page about the author."""
    return None if author is None or "://" in author else author


def _value(data: list[dict[str, Any]], key: str) -> str | None:
    return next((item[key] for item in data if isinstance(item.get(key), str) and item[key]), None)


def _named(data: list[dict[str, Any]], key: str) -> str | None:
    for item in data:
        people = item.get(key)
        people = people if isinstance(people, list) else [people]
        names = [person.get("name") if isinstance(person, dict) else person for person in people[:10]]
        told = [name for name in names if isinstance(name, str) and name and "://" not in name]
        if told:
            return ", ".join(told)[:300]
    return None


def _text(parser: LexborHTMLParser, selector: str) -> str | None:
    node = parser.css_first(selector)
    text = " ".join((node.text(deep=True) or "").split()) if node is not None else ""
    return text[:500] or None


def _attribute(parser: LexborHTMLParser, selector: str, name: str) -> str | None:
    node = parser.css_first(selector)
    value = (node.attributes.get(name) or "").strip() if node is not None else ""
    return value[:2000] or None
