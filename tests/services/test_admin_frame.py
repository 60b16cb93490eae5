"""Other sites, in a real browser: who may show the view in a frame, and that none can act through it."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.databases import Database
from tests.services.admin_site import OPERATOR, PASSWORD, AdminSite, admin_site_with, logged_in_page
from tests.waiting import wait_until

NAME = {"ADMIN_HOSTS": "jobs.lan"}


class Suite(http.server.BaseHTTPRequestHandler):
    """A page of another site, http://suite.jobs.lan, that shows the view of http://jobs.lan in a frame."""

    def do_GET(self) -> None:
        port = self.path.removeprefix("/")
        html = f'<!doctype html><title>suite</title><iframe src="http://jobs.lan:{port}/" width="900" height="700">'
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(html.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def suite() -> Iterator[str]:
    """The origin of the other site."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Suite)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://suite.jobs.lan:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_a_suite_of_the_same_domain_shows_it_and_people_log_in_and_act_there(
    browser: Any, database: Database, suite: str
) -> None:
    """Over plain HTTP to a name, where a browser sends no Sec-Fetch-Site: the Origin has to do."""
    with (
        admin_site_with(database, **NAME, ADMIN_FRAME_ANCESTORS=suite) as site,
        logged_in_page(browser, site, None) as page,
    ):
        page.goto(f"{suite}/{site.port}")
        frame = page.frame_locator("iframe")
        frame.get_by_label("Name").fill(OPERATOR)
        frame.get_by_label("Password").fill(PASSWORD)
        frame.get_by_role("button", name="Log in").click()
        frame.get_by_role("link", name="Pause test_job").click()
        frame.get_by_role("button", name="Pause").click()
        assert frame.get_by_role("status").inner_text() == "test_job is paused."
        frame.locator("#live[data-state=on]").wait_for()


def test_nobody_shows_it_in_a_frame_unless_a_setting_says_so(browser: Any, database: Database, suite: str) -> None:
    with admin_site_with(database, **NAME) as site, logged_in_page(browser, site, None) as page:
        refused: list[str] = []
        page.on("console", lambda said: refused.append(said.text))
        page.goto(f"{suite}/{site.port}")
        wait_until(lambda: [text for text in refused if "frame-ancestors" in text or "refused" in text.lower()])
        assert page.frame_locator("iframe").get_by_label("Name").count() == 0
        page.violations.clear()  # this one was wanted


def test_a_form_of_another_site_does_nothing(browser: Any, admin_site: AdminSite) -> None:
    target = f"{admin_site.url}/types/test_job/pause"
    html = (
        f'<!doctype html><title>prize</title><form method="post" action="{target}">'
        '<input name="minutes" value="0"><button>Win</button></form>'
    )
    with logged_in_page(browser, admin_site) as page:
        page.goto("/")
        page.route("http://evil.example/", lambda route: route.fulfill(body=html, content_type="text/html"))
        page.goto("http://evil.example/")
        with page.expect_navigation() as navigation:
            page.get_by_role("button", name="Win").click()

        assert navigation.value.status == 403
        assert "did not come from a page of Jobbkø" in page.content()
    assert admin_site.database.value("select paused_at is null from job_type where name = 'test_job'")
