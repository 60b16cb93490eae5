"""The application: what it is made of, and which pages it has.

How a page is added:

1. A module in pages/ with `async def name(request: Request) -> Response` and `routes = [Route("/path", name,
   name="name")]`; list the module in PAGES below, and the route's name in rendering.NAVIGATION if it belongs there (its
   word: `nav.NAME`).
2. `request.state.account` is who asks (`name`, `role`, `is_operator`). Every page needs an account, every POST an
   operator and a form of our own: access/guard.py sees to both. `@operator_only` is for pages that a viewer has no use
   for.
3. Queries stand in a .sql file in pages/, as `-- name: NAME` blocks with %(parameters)s; names are one of all files.
   `await request.app.state.database.fetch_all("NAME", id=…)`, `fetch_one`, `fetch_value`. What changes something:
   `async with request.app.state.database.acting_as(request.state.account.name) as session: await session.fetch_one(…)`,
   one transaction with the person's name in job_event and audit_entry. Refusals of the database arrive as
   sidelinja_jobs.errors and become pages by themselves (errors.py).
4. `render(request, "name.html", rows=rows)` with a template that extends layout.html; rendering.py says what every
   template sees. Words come from words/*.toml by `t("overview.busy", n=3)`, always in both languages; a part may have a
   file of its own. Links by `url("route_name", id=…)`, never by hand: they have to hold below ADMIN_ROOT_PATH.
5. After a POST: `return redirect(request, "route_name", notice="part.done", values={"n": 3})`.
6. No inline script, no `style=`, no `onclick`: the policy of headers.py refuses them. Widths of bars are attributes of
   <svg>, <progress> or <meter>.
7. Live: an element with an id and `data-live` is replaced when the page says something new after a job's event; one
   that holds the focus, an open <details>, a ticked box or selected text is left alone. `data-job="UUID"` on it, or on
   <main>, says whose events count; without one, every job's. `{{ cursor }}` in layout.html is where the events go on.
8. Tests: `admin_site` in tests/services/admin_site.py is a running server with clients that are logged in, and
   `browser_page` a real browser. A page that the overview leads to is checked by the crawl (axe, vnu, no violations).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from services.admin import streams
from services.admin.access import login
from services.admin.access.attempts import Attempts
from services.admin.access.guard import Guard
from services.admin.api import feeds
from services.admin.api import routes as api
from services.admin.api.authentication import TokenCheck
from services.admin.api.watch import Watch
from services.admin.counting import keep_counting
from services.admin.database import Database
from services.admin.errors import HANDLERS, Edge
from services.admin.headers import FixedHeaders
from services.admin.live import LiveFeed
from services.admin.metrics import CountRequests
from services.admin.pages import (
    audit,
    enqueue,
    failed,
    job_actions,
    job_bulk,
    job_export,
    job_list,
    job_page,
    media,
    overview,
    schedules,
    spend,
    statistics,
    transcript_analysis,
    transcripts,
    workers,
)
from services.admin.settings import AdminSettings
from services.admin.sharing import Shared

PAGES = (
    overview, job_list, job_bulk, job_export, failed, job_page, job_actions, enqueue, transcripts, transcript_analysis,
    media, workers, schedules, statistics, spend, audit,
)  # fmt: skip


def all_routes() -> list[BaseRoute]:
    """Every page and endpoint that there is."""
    routes: list[BaseRoute] = [*login.routes, *streams.routes, *api.routes, *feeds.routes]
    for page in PAGES:
        routes += page.routes
    static = StaticFiles(directory=Path(__file__).with_name("static"))
    return [*routes, Mount("/static", static, name="static")]


def create_app(settings: AdminSettings, database: Database, *, is_open: bool = False) -> Starlette:
    """The admin view, on a database that is open. `is_open`: nobody has to log in, which is for loopback alone."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        counting = asyncio.create_task(keep_counting(database))
        try:
            yield
        finally:
            counting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await counting

    routes = all_routes()
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers=HANDLERS,
        middleware=[
            Middleware(CountRequests, routes=routes),
            Middleware(FixedHeaders, settings=settings),
            Middleware(Edge),
            Middleware(Guard, settings=settings),
        ],
    )
    app.state.settings, app.state.database, app.state.is_open = settings, database, is_open
    app.state.shared = Shared()
    app.state.feed = LiveFeed(database, settings.live_streams)
    app.state.attempts, app.state.hashing = Attempts(), asyncio.Semaphore(1)
    app.state.token_check, app.state.watch = TokenCheck(), Watch(database)
    return app
