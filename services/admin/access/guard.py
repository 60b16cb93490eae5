"""The door: who is behind each request, and what may pass without a name.

Everything needs an account but the login, the static files, and the API, which has its own tokens (services.admin.api)
and never looks at a cookie. What changes something needs an operator and a page of ours that sends it, wherever it is:
a page cannot forget it.
"""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from services.admin.access.accounts import Account
from services.admin.access.digests import digest
from services.admin.access.origin import SAFE_METHODS, is_encrypted, is_from_own_site, is_proxy, peer_address
from services.admin.database import TROUBLE
from services.admin.errors import error_page
from services.admin.rendering import LIVE_HEADER, speech
from services.admin.settings import AdminSettings

LOGIN, LOGOUT, LIVE = "/login", "/logout", "/live"
OWN_TOKENS, FEEDS = "/api/", "/feeds/"
COOKIE = "jobbko_session"
SECURE_COOKIE = "__Host-jobbko_session"  # browsers take it by TLS alone, and from no neighbouring site
TOKEN_BYTES = 32
LONGEST_COOKIE = 200
LONGEST_NAME = 100


class Guard:
    """Puts the account into `request.state.account`, or ends the request."""

    def __init__(self, app: ASGIApp, settings: AdminSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = own_path(scope)
        request = Request(scope)
        request.state.account = None
        if path.startswith((OWN_TOKENS, "/static/")):
            await self._app(scope, receive, send)
            return
        if path.startswith(FEEDS) and request.method in SAFE_METHODS:
            # A token serves here as well as a session; the feed refuses who has neither.
            request.state.account = await find_account(request)
            await self._app(scope, receive, send)
            return
        refusal = await self._refusal(request, path)
        await (refusal or self._app)(scope, receive, send)

    async def _refusal(self, request: Request, path: str) -> Response | None:
        is_change = request.method not in SAFE_METHODS
        if is_change and not is_from_own_site(request):
            return error_page(request, 403, speech(request).t("access.foreign"))
        if path == LOGIN:
            return None
        account = await find_account(request)
        if account is None:
            return self._to_login(request)
        request.state.account = account
        if is_change and path != LOGOUT and not account.is_operator:
            return error_page(request, 403, speech(request).t("access.viewer"))
        return None

    def _to_login(self, request: Request) -> Response:
        wants_page = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
        if request.method not in SAFE_METHODS or not wants_page:
            return error_page(request, 401)
        path = own_path(request.scope)
        query = f"?{request.url.query}" if request.url.query else ""
        target = request.scope.get("root_path", "") + LOGIN
        return RedirectResponse(target + (f"?next={quote(path + query)}" if path != "/" or query else ""), 303)


async def find_account(request: Request) -> Account | None:
    """Who it is: by the proxy's header, by the session, or `local` where nobody has to log in."""
    settings: AdminSettings = request.app.state.settings
    if request.app.state.is_open:
        cursor = await request.app.state.database.fetch_value("live_snapshot")
        return Account("local", "operator", "open", cursor)
    if settings.proxy_header and is_proxy(peer_address(request), settings.proxies):
        names = request.headers.getlist(settings.proxy_header)
        if len(names) == 1 and names[0]:
            return await _proxy_account(request, names[0])
    return await session_account(request)


async def _proxy_account(request: Request, name: str) -> Account | None:
    settings, database = request.app.state.settings, request.app.state.database
    row = await database.fetch_one("proxy_account", name=name.replace("\0", "")[:LONGEST_NAME])
    if row["known"] is not None:
        return None if row["disabled"] else Account(row["known"], row["role"], "proxy", row["cursor"])
    if settings.proxy_new_accounts == "refuse":
        return None
    return Account(name[:LONGEST_NAME], settings.proxy_new_accounts, "proxy", row["cursor"])


async def session_account(request: Request) -> Account | None:
    """The account whose session the cookie names. What a page asks for by itself does not keep a session awake."""
    token = session_token(request)
    if token is None:
        return None
    idle = request.app.state.settings.idle_hours
    is_awake = LIVE_HEADER not in request.headers and own_path(request.scope) != LIVE
    row = await request.app.state.database.fetch_one(
        "use_session", token_hash=digest(token), idle_hours=idle, touch=is_awake
    )
    return None if row is None else Account(row["name"], row["role"], "session", row["cursor"])


async def is_still_allowed(request: Request) -> bool:
    """Whether a request that goes on for long would still be let in; a database that is away does not end it."""
    try:
        return await find_account(request) is not None
    except TROUBLE:
        return True


def session_token(request: Request) -> str | None:
    """What the cookie holds, None where there is none that could be ours."""
    name = cookie_name(request)
    token = request.cookies.get(name)
    return token if token and len(token) <= LONGEST_COOKIE else None


def own_path(scope: Scope) -> str:
    """The path below ADMIN_ROOT_PATH, which headers.py has put in front of every path."""
    path: str = scope["path"][len(scope.get("root_path", "")) :]
    return path or "/"


def cookie_name(request: Request) -> str:
    """By TLS the name that only TLS may set."""
    return SECURE_COOKIE if is_encrypted(request, request.app.state.settings) else COOKIE
