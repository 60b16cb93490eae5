"""Who gets into the admin view, and what each may do there; tried on every route that it has."""

import re
from collections.abc import Iterator

import httpx
import pytest
from starlette.routing import Route

from tests.databases import Database
from tests.services.admin_jobs import links
from tests.services.admin_site import OPERATOR, PASSWORD, VIEWER, AdminSite, admin_site_with

OWN_TOKENS = ("/api/", "/feeds/")
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}


def routes(site: AdminSite, method: str) -> Iterator[str]:
    """Every path of the view that takes the method, its parameters filled; the API and its feeds have tokens."""
    for route in site.app.routes:
        if isinstance(route, Route) and method in (route.methods or ()) and not route.path.startswith(OWN_TOKENS):
            path = re.sub(r"\{\w+:uuid\}|\{(?:id|job_id)\}", "6f1c2f0e-6a51-4f5e-9d3c-000000000000", route.path)
            yield re.sub(r"\{\w+(?::\w+)?\}", "x", path)


def test_no_page_is_shown_to_nobody(shared_admin_site: AdminSite) -> None:
    paths = [path for path in routes(shared_admin_site, "GET") if path not in ("/login", "/metrics")]

    assert len(paths) > 8
    for path in paths:
        answer = shared_admin_site.nobody.get(path)
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login"), path
        fetched = shared_admin_site.nobody.get(path, headers={"Sec-Fetch-Mode": "cors"})
        assert fetched.status_code == 401, f"a script gets no login page: {path}"
        assert "test_job" not in answer.text + fetched.text


def test_nobody_and_no_viewer_changes_anything(admin_site: AdminSite) -> None:
    paths = [path for path in routes(admin_site, "POST") if path not in ("/login", "/logout")]

    assert len(paths) > 2
    for path in paths:
        assert admin_site.nobody.post(path).status_code == 401, path
        assert admin_site.viewer.post(path).status_code == 403, path
    assert admin_site.database.rows("select * from audit_entry where actor = %s", VIEWER) == []


def test_no_other_site_changes_anything(shared_admin_site: AdminSite) -> None:
    for path in routes(shared_admin_site, "POST"):
        assert shared_admin_site.operator.post(path, headers=CROSS_SITE).status_code == 403, path


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "{own}"}, 403),
        ({"Origin": "{own}"}, 303),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_a_form_counts_only_from_a_page_of_ours(
    shared_admin_site: AdminSite, headers: dict[str, str], status: int
) -> None:
    """On plain HTTP to a name that is not loopback browsers send no Sec-Fetch-Site: then Origin has to be the Host."""
    sent = {name: value.format(own=shared_admin_site.url) for name, value in headers.items()}
    with httpx.Client(base_url=shared_admin_site.url, cookies=shared_admin_site.operator.cookies) as client:
        answer = client.post("/types/test_job/resume", headers=sent)

    assert answer.status_code == status


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:{port}", 200), ("LOCALHOST", 200), ("jobs.lan:80", 200), ("evil.example", 421), ("", 421),
     ("127.0.0.1.evil.example", 421), ("[::1]:80", 421)],
)  # fmt: skip
def test_a_name_that_is_not_ours_is_not_served(shared_admin_site: AdminSite, host: str, status: int) -> None:
    """Else a page of another site could point its own name at this address."""
    answer = shared_admin_site.operator.get("/", headers={"Host": host.format(port=shared_admin_site.port)})

    assert answer.status_code == status
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_every_response_has_the_policy(shared_admin_site: AdminSite) -> None:
    answers = [
        shared_admin_site.operator.get("/"),
        shared_admin_site.operator.get("/nowhere"),
        shared_admin_site.operator.get("/static/style.css"),
        shared_admin_site.operator.post("/types/nobody/pause"),
        shared_admin_site.nobody.get("/"),
        shared_admin_site.nobody.get("/login"),
        shared_admin_site.nobody.post("/"),
    ]

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'"), answer.url
        assert "unsafe" not in policy
        assert policy.endswith("frame-ancestors 'none'")
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers
    assert answers[0].headers["cache-control"] == "no-store"
    style = answers[2]
    assert style.headers["cache-control"] == "no-cache"
    again = shared_admin_site.nobody.get("/static/style.css", headers={"If-None-Match": style.headers["etag"]})
    assert again.status_code == 304


def test_a_fault_of_ours_is_a_page_with_the_policy_and_tells_nothing(
    admin_site: AdminSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret of the fault")

    monkeypatch.setattr(admin_site.app.state.database, "session", broken)
    answer = admin_site.operator.get("/")

    assert answer.status_code == 500
    assert "A fault of ours" in answer.text
    assert "secret of the fault" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_other_sites_may_show_it_in_a_frame_where_the_setting_says_so(database: Database) -> None:
    with admin_site_with(database, ADMIN_FRAME_ANCESTORS="self https://suite.example.no") as site:
        answer = site.operator.get("/")

    assert answer.headers["content-security-policy"].endswith("frame-ancestors 'self' https://suite.example.no")
    assert "x-frame-options" not in answer.headers, "it cannot name a site, and old browsers would refuse"


def test_a_viewer_is_offered_nothing_that_changes_anything(shared_admin_site: AdminSite) -> None:
    for path in ("/", "/workers", "/schedules", "/statistics", "/spend", "/audit"):
        text = shared_admin_site.viewer.get(path).text
        assert re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', text) == ["/logout"], path
        assert "/pause" not in text
    assert shared_admin_site.viewer.get("/types/test_job/pause").status_code == 403


def test_what_a_proxy_serves_below_a_path_stays_below_it(database: Database) -> None:
    with admin_site_with(database, ADMIN_ROOT_PATH="/jobbko") as site:
        kept = site.client(OPERATOR)
        stripped = site.client(OPERATOR, follow_redirects=False)
        stripped.base_url = f"http://127.0.0.1:{site.port}"
        for client in (kept, stripped):
            page = client.get("/")
            assert page.status_code == 200
            assert [link for link in links(page.text) if not link.startswith("/jobbko/")] == []
        assert site.nobody.get("/workers").headers["location"] == "/jobbko/login?next=/workers"
        entered = site.log_in(site.nobody)
        assert (entered.status_code, entered.headers["location"]) == (303, "/jobbko/")
        paused = kept.post("/types/test_job/pause", data={"minutes": "15"})
        assert paused.headers["location"] == "/jobbko/"
        assert "test_job is paused" in kept.get("/").text


def test_a_request_that_never_ends_is_cut_off(shared_admin_site: AdminSite) -> None:
    def endless() -> Iterator[bytes]:
        yield b"name="
        for _ in range(300):
            yield b"x" * 65536

    with httpx.Client(base_url=shared_admin_site.url, headers={"Sec-Fetch-Site": "same-origin"}, timeout=20) as client:
        try:
            status = client.post(
                "/login", content=endless(), headers={"Content-Type": "application/x-www-form-urlencoded"}
            ).status_code
        except httpx.WriteError:  # it had answered and hung up before all was sent
            status = 413

    assert status in (400, 413)
    assert shared_admin_site.nobody.get("/login").status_code == 200


def test_without_credentials_on_loopback_the_view_is_open_and_says_so(database: Database) -> None:
    with admin_site_with(database) as site:
        site.stop()
        site.start(site.port, is_open=True)
        page = site.nobody.get("/")

    assert page.status_code == 200
    assert "No login: only this machine can get in" in page.text
    assert PASSWORD not in page.text


ODD = (
    "%00",
    "%FF%FE",
    "%ED%A0%80",
    "%F0%9F%98%80",
    "%E2%80%AE",
    "..",
    "%2e%2e%2f",
    "'%22%3C",
    "%25s%7Bx%7D",
    "a" * 3000,
)


def test_no_nonsense_in_a_path_a_field_a_cookie_or_a_header_is_a_fault_of_ours(shared_admin_site: AdminSite) -> None:
    site = shared_admin_site
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answers = []
    for odd in ODD:
        answers += [
            site.operator.get(f"/types/{odd}/pause"),
            site.operator.post(f"/types/{odd}/resume"),
            site.operator.post(f"/schedules/{odd}/run"),
            site.operator.post(f"/schedules/{odd}/off"),
            site.operator.post(
                "/types/test_job/pause", content=f"minutes={odd}&reason={odd}&{odd}={odd}", headers=form
            ),
            site.operator.get(f"/audit?actor={odd}&action={odd}&before={odd}"),
            site.operator.get(f"/statistics?show={odd}&days={odd}"),
            site.operator.get(f"/{odd}"),
            site.nobody.get(f"/login?next={odd}"),
            site.nobody.get("/", headers={"Cookie": f"jobbko_session={odd}; jobbko_notice={odd}"}),
            site.operator.get("/", headers={"Accept-Language": odd, "Cookie": f"jobbko_notice={odd}"}),
        ]
    answers.append(site.nobody.post("/login", content=b"name=%00%FF&password=%ED%A0%80&next=%00", headers=form))
    answers.append(
        site.nobody.post("/login", content=b"--x", headers={"Content-Type": "multipart/form-data; boundary=x"})
    )
    answers.append(site.nobody.post("/login", content=b"\xff\x00", headers={"Content-Type": "application/json"}))
    answers.append(site.nobody.get("/", headers=[(b"Cookie", b"jobbko_session=\xff\xfe")]))

    assert [f"{answer.url}: {answer.status_code}" for answer in answers if answer.status_code >= 500] == []
