"""Feeds of failed jobs, for readers of feeds and for the surrounding suite: Atom and JSON Feed.

A failure is an entry; a job that fails again after a retry is another one. No payload is told, and what looks like a
secret in a message is masked. Who reads has a session, or a token with the scope read, as a bearer or as the password
of HTTP Basic, since readers of feeds know no other way.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, UUID, uuid5
from xml.etree import ElementTree

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.access.origin import is_encrypted
from services.admin.api.authentication import check_scope
from services.admin.api.operations import docs_path, sent_token
from services.admin.api.problems import ProblemError
from services.admin.messages import redacted
from services.admin.rendering import speech, url_maker

MOST_ENTRIES = 50
_MESSAGE_CHARACTERS = 1000
_FAILURES = UUID("4cfb5a2e-6f0b-4a6c-9a37-0f6d0c1d2b58")  # namespace of the entries' ids
_ATOM = "http://www.w3.org/2005/Atom"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SECONDS = 60  # a reader that asks again sooner gets what it has


@dataclass(frozen=True)
class Entry:
    """One failure, as it is told."""

    id: str
    url: str
    title: str
    text: str
    job_type: str
    at: datetime


@dataclass(frozen=True)
class Feed:
    """The newest failures; `self_url` is where this feed is, `page_url` the page for people."""

    id: str
    title: str
    language: str
    self_url: str
    page_url: str
    entries: Sequence[Entry]

    @property
    def updated(self) -> datetime:
        """When the newest of them happened."""
        return max((entry.at for entry in self.entries), default=datetime(1970, 1, 1, tzinfo=UTC))


async def read_feed(request: Request) -> Feed:
    """The feed that is asked for."""
    job_type = request.query_params.get("type", "").replace("\0", "")[:1000] or None
    rows = await request.app.state.database.fetch_all("feed_failures", job_type=job_type, limit=MOST_ENTRIES)
    saying, url, site = speech(request), url_maker(request), _site(request)
    entries = []
    for row in rows:
        kind = redacted(row["error_class"] or saying.t("feeds.unknown"))
        message = redacted(row["error_msg"])[:_MESSAGE_CHARACTERS]
        attempts = saying.t("feeds.attempts", n=row["attempts"], of=row["max_attempts"])
        entries.append(
            Entry(
                id=uuid5(_FAILURES, f"{row['id']} {row['at'].isoformat()}").urn,
                url=site + url("job", id=row["id"]),
                title=saying.t("feeds.entry", type=row["job_type"], kind=kind),
                text=f"{message}\n{attempts}".strip(),
                job_type=row["job_type"],
                at=row["at"],
            )
        )
    title = saying.t("feeds.title_of_type", type=job_type) if job_type else saying.t("feeds.title")
    query = f"?{request.url.query}" if request.url.query else ""
    self_url = f"{site}{url(request.scope['route'].name)}{query}"
    return Feed(
        uuid5(NAMESPACE_URL, self_url).urn, title, saying.language, self_url, site + url("failed_jobs"), entries
    )


def as_atom(feed: Feed) -> bytes:
    """Atom (RFC 4287)."""
    root = ElementTree.Element("feed", {"xmlns": _ATOM, "xml:lang": feed.language})
    _add(root, "id", feed.id)
    _add(root, "title", feed.title)
    _add(root, "updated", _time(feed.updated))
    _add(_add(root, "author"), "name", "Jobbkø")
    _add(root, "link", rel="self", href=feed.self_url, type="application/atom+xml")
    _add(root, "link", rel="alternate", href=feed.page_url, type="text/html")
    for entry in feed.entries:
        node = _add(root, "entry")
        _add(node, "id", entry.id)
        _add(node, "title", entry.title)
        _add(node, "updated", _time(entry.at))
        _add(node, "published", _time(entry.at))
        _add(node, "link", rel="alternate", href=entry.url, type="text/html")
        _add(node, "category", term=entry.job_type)
        _add(node, "content", entry.text, type="text")
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def as_json_feed(feed: Feed) -> bytes:
    """JSON Feed 1.1."""
    items = [
        {
            "id": entry.id,
            "url": entry.url,
            "title": entry.title,
            "content_text": entry.text,
            "date_published": _time(entry.at),
            "tags": [entry.job_type],
        }
        for entry in feed.entries
    ]
    return msgspec.json.encode(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": feed.title,
            "home_page_url": feed.page_url,
            "feed_url": feed.self_url,
            "language": feed.language,
            "authors": [{"name": "Jobbkø"}],
            "items": items,
        }
    )


def _endpoint(write: Callable[[Feed], bytes], media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def run(request: Request) -> Response:
        try:
            if request.state.account is None:
                check_scope(await sent_token(request, accepts_basic=True), "read")
        except ProblemError as problem:
            return problem.response(docs_path(request))
        body = write(await read_feed(request))
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {"ETag": etag, "Cache-Control": f"private, max-age={_SECONDS}", "Vary": "Authorization, Cookie"}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=media_type, headers=headers)

    return run


def _site(request: Request) -> str:
    """Scheme and host that the reader knows us by; the host is one of ADMIN_HOSTS."""
    scheme = "https" if is_encrypted(request, request.app.state.settings) else "http"
    return f"{scheme}://{request.url.netloc}"


def _add(parent: ElementTree.Element, name: str, text: str = "", /, **attributes: str) -> ElementTree.Element:
    kept = {key: _NOT_IN_XML.sub("\ufffd", value) for key, value in attributes.items()}
    node = ElementTree.SubElement(parent, name, kept)
    node.text = _NOT_IN_XML.sub("\ufffd", text) or None
    return node


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


routes = [
    Route("/feeds/failed.atom", _endpoint(as_atom, "application/atom+xml"), name="feed_atom"),
    Route("/feeds/failed.json", _endpoint(as_json_feed, "application/feed+json"), name="feed_json"),
]
