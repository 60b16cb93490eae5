"""A running admin view for tests: a real server on loopback against the test's database, logged in as jobbko_admin.

`admin_site` has httpx clients of an operator, a viewer and nobody; `browser_page` is a page of Debian's Chromium,
logged in as the operator. Sessions are opened in the database, since a login costs half a second of hashing;
`log_in` goes by the form. `admin_site_with` runs one with other settings.
"""

import asyncio
import base64
import contextlib
import dataclasses
import hashlib
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from services.admin.access.digests import digest
from services.admin.app import create_app
from services.admin.database import Database as AdminDatabase
from services.admin.server import AdminServer
from services.admin.settings import AdminSettings, read_settings
from sidelinja_jobs.log import configure_logging
from tests.databases import Database
from tests.waiting import wait_until

OPERATOR, VIEWER = "kari", "ola"
PASSWORD = "hemmelig-nok"
# N = 2^4 in place of 2^14: the cost stands in the hash, so that a test need not pay it.
CHEAP_HASH = "scrypt$4$8$1$AAAAAAAAAAAAAAAAAAAAAA==$"
COOKIE = "jobbko_session"
CHROMIUM = ("--no-sandbox", "--host-resolver-rules=MAP *.lan 127.0.0.1")


def cheap_hash(password: str) -> str:
    """A hash of the form that the view makes, at a 16,000th of the cost."""
    key = hashlib.scrypt(password.encode(), salt=bytes(16), n=16, r=8, p=1, dklen=32)
    return CHEAP_HASH + base64.b64encode(key).decode()


class AdminSite:
    """A running server; `url` ends without a slash."""

    def __init__(self, database: Database, **environ: str) -> None:
        configure_logging("json", "warning")
        self.database = database
        self.folder = Path(tempfile.mkdtemp(prefix="jobbko-admin-"))
        self.settings: AdminSettings = read_settings(
            {
                "DATABASE_URL": database.dsn("admin"),
                "ADMIN_PORT": "0",
                "ADMIN_HOSTS": "127.0.0.1,localhost,jobs.lan",
                "ADMIN_LANGUAGE": "en",
                "MEDIA_ROOT": str(self.folder / "media"),
                "HEALTH_FILE": str(self.folder / "healthy"),
            }
            | environ
        )
        (self.folder / "media").mkdir()
        for name, role in ((OPERATOR, "operator"), (VIEWER, "viewer")):
            database.rows("select put_account(%s, %s, %s)", name, role, cheap_hash(PASSWORD))
        self._clients: list[httpx.Client] = []
        self.start()

    def start(self, port: int = 0, **options: Any) -> None:
        """Starts the server, in a thread of its own; `port` for one that is started again."""
        self.settings = dataclasses.replace(self.settings, port=port)
        started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(started, options), name="admin-site", daemon=True)
        self._thread.start()
        wait_until(lambda: self._failure or self._is_up(started), 20, what="the admin view to listen")
        if self._failure:
            raise self._failure
        self.port: int = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}{self.settings.root_path}"

    def stop(self) -> None:
        """Asks the server to end, as SIGTERM does, and waits for it."""
        self.server.handle_exit(15, None)
        self._thread.join(20)
        assert not self._thread.is_alive(), "the admin view did not stop"

    def client(self, account: str | None = None, **options: Any) -> httpx.Client:
        """A client as a browser on this site would be, logged in as that account."""
        headers = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"} | options.pop("headers", {})
        client = httpx.Client(base_url=self.url, headers=headers, timeout=20, **options)
        if account is not None:
            client.cookies.set(COOKIE, self.token(account), domain="127.0.0.1", path="/")
        self._clients.append(client)
        return client

    @cached_property
    def operator(self) -> httpx.Client:
        """A client that may do everything."""
        return self.client(OPERATOR)

    @cached_property
    def viewer(self) -> httpx.Client:
        """A client that may look."""
        return self.client(VIEWER)

    @cached_property
    def nobody(self) -> httpx.Client:
        """A client without a session."""
        return self.client()

    def token(self, account: str) -> str:
        """The cookie of a new session."""
        token = secrets.token_urlsafe(32)
        self.database.rows("select open_session(%s, %s, '1 hour', '1 hour')", account, digest(token))
        return token

    def log_in(self, client: httpx.Client, name: str = OPERATOR, password: str = PASSWORD) -> httpx.Response:
        """By the form."""
        return client.post("/login", data={"name": name, "password": password})

    def close(self) -> None:
        for client in self._clients:
            client.close()
        if self._thread.is_alive():
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_up(self, started: threading.Event) -> bool:
        return started.is_set() and self.server.started

    def _run(self, started: threading.Event, options: dict[str, Any]) -> None:
        async def serve() -> None:
            database = AdminDatabase(self.settings)
            self.app = create_app(self.settings, database, **options)
            self.server = AdminServer(self.app, self.settings)
            async with database.opened():
                started.set()
                await self.server.serve_with_health()

        try:
            asyncio.run(serve())
        except BaseException as error:
            self._failure = error


@contextlib.contextmanager
def admin_site_with(database: Database, **environ: str) -> Iterator[AdminSite]:
    """A running view with other settings, by the names of their variables."""
    site = AdminSite(database, **environ)
    try:
        yield site
    finally:
        site.close()


@contextlib.contextmanager
def running_browser() -> Iterator[Any]:
    """Debian's Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    assert program, "there is no chromium on the PATH. Next: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(CHROMIUM))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def logged_in_page(browser: Any, site: AdminSite, account: str | None = OPERATOR, **options: Any) -> Iterator[Any]:
    """A page; what the policy refused, and what its scripts threw, stand in `page.violations` at the end: none."""
    context = browser.new_context(base_url=site.url, **({"locale": "en-GB"} | options))
    context.set_default_timeout(10_000)
    if account is not None:
        context.add_cookies([{"name": COOKIE, "value": site.token(account), "url": site.url}])
    page = context.new_page()
    page.violations = []
    page.on("pageerror", lambda error: page.violations.append(str(error)))
    page.on("console", lambda said: _note_refusal(page, said))
    try:
        yield page
        assert page.violations == []
    finally:
        context.close()


def _note_refusal(page: Any, said: Any) -> None:
    if "Content Security Policy" in said.text:
        page.violations.append(said.text)
