"""The feeds of failed jobs: valid, stable, free of payloads and secrets, closed without session or token."""

import base64
import html
import json
import re
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID
from xml.etree import ElementTree

import httpx

from tests.databases import Database
from tests.services.admin_site import AdminSite, admin_site_with
from tests.services.api_client import make_token

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "<script>alert(1)</script> & \x00-free \x1b[31m \ufffe password=hunter2 https://me:pass@example.org"


def fail(site: AdminSite, job_type: str = "test_job", message: str = "boom", error_class: str | None = "boom") -> UUID:
    job_id = site.database.enqueue(job_type, {"api_key": "hemmelig", "note": "payload-text"})
    site.database.rows(
        "update job_queue set status = 'error', attempts = 3, error_class = %s, error_msg = %s,"
        " completed_at = clock_timestamp() where id = %s",
        error_class, message, job_id,
    )  # fmt: skip
    return job_id


def atom(site: AdminSite, **parameters: str) -> ElementTree.Element:
    answer = site.viewer.get("/feeds/failed.atom", params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/atom+xml"
    return ElementTree.fromstring(answer.content)  # noqa: S314 - written by our own server


def test_an_atom_feed_has_what_the_format_asks_for(admin_site: AdminSite) -> None:
    jobs = [fail(admin_site), fail(admin_site, "other_job", HOSTILE.replace("\x00", ""), None)]
    fail(admin_site, error_class="cancelled")

    feed = atom(admin_site)
    entries = feed.findall(f"{ATOM}entry")

    for node in (feed, *entries):
        assert all(len(node.findall(f"{ATOM}{name}")) == 1 for name in ("id", "title", "updated")), node
        assert UUID(node.findtext(f"{ATOM}id", "").removeprefix("urn:uuid:")).version == 5
        assert datetime.fromisoformat(node.findtext(f"{ATOM}updated", "")).tzinfo is not None
    assert feed.findtext(f"{ATOM}author/{ATOM}name")
    assert {link.get("rel") for link in feed.findall(f"{ATOM}link")} == {"self", "alternate"}
    assert feed.find(f"{ATOM}link[@rel='self']").get("href") == f"{admin_site.url}/feeds/failed.atom"  # type: ignore[union-attr]
    links = [entry.find(f"{ATOM}link").get("href") for entry in entries]  # type: ignore[union-attr]
    assert links == [f"{admin_site.url}/jobs/{job_id}" for job_id in reversed(jobs)]
    text = entries[0].findtext(f"{ATOM}content", "")
    assert text.startswith("<script>alert(1)</script> & ")
    assert all(secret not in text for secret in ("hunter2", "pass@", "payload-text", "hemmelig", "\x1b", "\ufffe"))


def test_a_json_feed_tells_the_same(admin_site: AdminSite) -> None:
    fail(admin_site)
    fail(admin_site, "other_job")

    feed = admin_site.viewer.get("/feeds/failed.json").json()
    of_type = admin_site.viewer.get("/feeds/failed.json", params={"type": "other_job"}).json()

    assert (feed["version"], feed["feed_url"]) == (
        "https://jsonfeed.org/version/1.1",
        f"{admin_site.url}/feeds/failed.json",
    )
    assert [item["id"] for item in feed["items"]] == [
        entry.findtext(f"{ATOM}id") for entry in atom(admin_site).findall(f"{ATOM}entry")
    ]
    assert all({"id", "url", "title", "content_text", "date_published"} <= item.keys() for item in feed["items"])
    assert [item["tags"] for item in of_type["items"]] == [["other_job"]]
    assert "payload-text" not in json.dumps(feed)


def test_entries_keep_their_ids_and_a_further_failure_is_another_one(admin_site: AdminSite) -> None:
    job_id = fail(admin_site)

    def ids() -> list[str]:
        return [item["id"] for item in admin_site.viewer.get("/feeds/failed.json").json()["items"]]

    first, again = ids(), ids()
    admin_site.database.rows("select retry_job(%s)", job_id)
    retried = ids()
    admin_site.database.rows(
        "update job_queue set status = 'error', error_class = 'boom', completed_at = clock_timestamp() where id = %s",
        job_id,
    )

    assert first == again
    assert retried == []
    assert len(ids()) == 1
    assert ids() != first


def test_a_failure_without_a_time_is_told_too(admin_site: AdminSite) -> None:
    """A program that follows the specification alone need not say when a job ended."""
    job_id = admin_site.database.enqueue()
    admin_site.database.rows("update job_queue set status = 'error', error_msg = 'nei' where id = %s", job_id)

    (item,) = admin_site.viewer.get("/feeds/failed.json").json()["items"]

    assert item["url"].endswith(str(job_id))


def test_addresses_hold_behind_a_proxy_with_a_prefix(database: Database) -> None:
    settings = {"ADMIN_ROOT_PATH": "/jobbko", "ADMIN_PROXY_ADDRESSES": "127.0.0.1"}
    with admin_site_with(database, **settings) as site:
        job_id = fail(site)
        headers = {"X-Forwarded-Proto": "https", "Authorization": f"Bearer {make_token(site)}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{site.port}", headers=headers) as client:
            feed = client.get("/feeds/failed.json?type=test_job").json()
            made = client.post("/api/v1/jobs", json={"job_type": "test_job", "payload": {}})
            problem = client.get("/api/v1/jobs/1").json()
            document = client.get("/api/v1/openapi.json").json()
            manual = client.get("/api/v1/docs").text
            inside = client.get("/jobbko/api/v1/jobs").status_code

    home = f"https://127.0.0.1:{site.port}/jobbko"
    assert feed["feed_url"] == f"{home}/feeds/failed.json?type=test_job"
    assert feed["items"][0]["url"] == f"{home}/jobs/{job_id}"
    assert made.headers["location"] == f"/jobbko/api/v1/jobs/{made.json()['id']}"
    assert problem["type"] == "/jobbko/api/v1/docs#invalid_parameter"
    assert document["servers"] == [{"url": "/jobbko/api/v1"}]
    assert 'href="/jobbko/static/style.css"' in manual
    assert inside == 200  # a proxy may pass the prefix on


def test_feeds_are_closed_to_who_has_neither_session_nor_token(admin_site: AdminSite) -> None:
    basic = base64.b64encode(f"feed:{make_token(admin_site, ['read'], name='feed')}".encode()).decode()
    with httpx.Client(base_url=admin_site.url) as client:
        for path in ("/feeds/failed.atom", "/feeds/failed.json"):
            closed = client.get(path)
            bearer = client.get(
                path, headers={"Authorization": f"Bearer {make_token(admin_site, ['read'], name=path[7:])}"}
            )
            by_password = client.get(path, headers={"Authorization": f"Basic {basic}"})
            wrong = client.get(path, headers={"Authorization": "Basic Og=="})
            scope = make_token(admin_site, ["enqueue"], name=f"no {path[7:]}")
            scopeless = client.get(path, headers={"Authorization": f"Bearer {scope}"})
            fresh = client.get(
                path, headers={"Authorization": f"Basic {basic}", "If-None-Match": bearer.headers["etag"]}
            )

            answers = (closed, bearer, by_password, wrong, scopeless, fresh)
            assert [answer.status_code for answer in answers] == [401, 200, 200, 401, 403, 304]
            assert fresh.content == b""


def test_the_pages_of_failures_name_their_feeds(database: Database) -> None:
    """Where a reader of feeds looks for them, and where a person does; below a path, and for the type that is shown."""
    with admin_site_with(database, ADMIN_ROOT_PATH="/jobbko") as site:
        fail(site, "type & æ")
        fail(site)
        for page, failures in (("/", 2), ("/errors", 2), (f"/errors?{urlencode({'type': 'type & æ'})}", 1)):
            text = site.viewer.get(page).text
            links = re.findall(r'<link rel="alternate" type="([^"]+)" title="([^"]+)" href="/jobbko([^"]+)">', text)
            assert [kind for kind, _, _ in links] == ["application/atom+xml", "application/feed+json"]
            atom, told = (site.viewer.get(html.unescape(path)) for _, _, path in links)
            assert [answer.headers["content-type"] for answer in (atom, told)] == [kind for kind, _, _ in links]
            assert [html.unescape(title) for _, title, _ in links] == [told.json()["title"]] * 2
            assert (atom.text.count("<entry>"), len(told.json()["items"])) == (failures, failures)
            assert page == "/" or all(f'<a href="/jobbko{path}">' in text for _, _, path in links)
