"""What a page's markup says about a place: the element's name, its role, and the words in its class and id.

Classes are a hint, not a promise: a zone that holds the title or most of the sentences is none (pages.py looks).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

_BY_TAG = {
    "nav": "navigation",
    "footer": "footer",
    "aside": "beside the text",
    "header": "header",
    "form": "form",
    "button": "button",
    "dialog": "consent",
    "menu": "navigation",
}
_BY_ROLE = {
    "navigation": "navigation",
    "banner": "header",
    "contentinfo": "footer",
    "search": "search",
    "complementary": "beside the text",
    "dialog": "consent",
    "alertdialog": "consent",
    "button": "button",
    "menu": "navigation",
    "menubar": "navigation",
    "tablist": "navigation",
    "toolbar": "tools",
}
_WORDS = {
    "consent": "cookie cookies consent samtykke gdpr cmp onetrust cookiebot cookiebar cookiebanner didomi usercentrics",
    "navigation": "nav navbar navigation navigasjon menu meny topmenu sidemenu sidemeny breadcrumb breadcrumbs crumb "
    "crumbs brodsmule brodsmuler brødsmulesti topbar skip skiplink skiplinks pager pagination paginering toc tabs",
    "share": "share sharing shares social some sosialt del deling addthis sharethis",
    "advertising": "ad ads adslot advert advertisement advertising advertorial annonse annonser reklame sponsor "
    "sponsored promo promotion promoted dfp",
    "related": "related relatert relaterte recommended recommendations anbefalt anbefalinger recirculation readmore "
    "lesogsa trending mestlest mostread popular siste more flere teaser teasers",
    "comments": "comments commentlist kommentarer kommentarfelt disqus respond",
    "subscription": "paywall subscribe subscription abonnement newsletter nyhetsbrev signup login innlogging",
    "feedback": "feedback rating tilbakemelding helpful usefulness survey",
    "contact": "contact contacts kontakt kontaktinfo kontaktboks",
    "footer": "footer bottom bunn colophon copyright sitefooter bunntekst botn",
    "tags": "tags taglist emneord emner stikkord keywords topics tagcloud categories",
    "photo credit": "credit credits photocredit photographer fotograf fotokreditt",
    "header": "siteheader masthead topheader pageheader globalheader",
    "tools": "toolbar tools actions verktoy verktøy printlink edit editsection",
    "search": "search searchbox sok søk searchform",
}
_BY_WORD = {word: zone for zone, words in _WORDS.items() for word in words.split()}
# The matter itself, whatever surrounds it.
_MATTER_WORDS = "factbox fakta faktaboks fact facts quote sitat pullquote infobox note notes footnote footnotes"
_MATTER = frozenset(_MATTER_WORDS.split())
_SPLIT = re.compile(r"[^a-zæøå0-9]+|(?<=[a-zæøå])(?=[A-ZÆØÅ])")
_PARTS = 12  # words of a class attribute that are looked at


@dataclass(frozen=True, slots=True)
class Zone:
    """A part of the page that is not its text. A certain one is named by the page itself, not guessed by a class."""

    id: int
    name: str
    is_certain: bool


def zone_of(tag: str, attributes: Mapping[str, str | None], *, is_in_heading: bool) -> tuple[str, bool] | None:
    """Name of the zone that an element opens, and whether it is certain."""
    named = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".strip()
    words = _words(named) if named else ()
    if any(word in _MATTER for word in words):
        return None
    role = (attributes.get("role") or "").lower()
    if tag == "button" or role == "button":
        opens_text = "aria-controls" in attributes and not _BY_WORD.keys() & set(words)
        return None if is_in_heading or opens_text else ("button", True)
    if role in _BY_ROLE:
        return _BY_ROLE[role], True
    for word in words:
        if word in _BY_WORD:
            return _BY_WORD[word], False
    return (_BY_TAG[tag], tag in ("nav", "footer")) if tag in _BY_TAG else None


def _words(named: str) -> list[str]:
    """The words of class names, each also joined with the next: read-more is readmore, too."""
    found: list[str] = []
    for name in named.split()[:_PARTS]:
        parts = [part.lower() for part in _SPLIT.split(name[:80]) if part]
        found += parts
        found += [first + second for first, second in pairwise(parts)]
    return found
