"""Logging in and out. A login always makes a new token: one that was planted in the browser before is worth nothing."""

import asyncio
import secrets
from math import ceil
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from services.admin.access import passwords
from services.admin.access.digests import digest
from services.admin.access.guard import (
    COOKIE,
    LONGEST_NAME,
    SECURE_COOKIE,
    TOKEN_BYTES,
    cookie_name,
    session_account,
    session_token,
)
from services.admin.access.origin import client_address, is_encrypted, leads_inside
from services.admin.rendering import render, speech, url_maker
from sidelinja_jobs.log import get_logger

log = get_logger()


async def login_page(request: Request) -> Response:
    """The form; who is logged in already goes on."""
    if request.app.state.is_open or await session_account(request) is not None:
        return RedirectResponse(_target(request, request.query_params.get("next")), 303)
    return render(request, "login.html", next=request.query_params.get("next", ""), name="", problem="")


async def log_in(request: Request) -> Response:
    """Compares name and password; says never which of them was wrong."""
    form = await request.form()
    name, password = str(form.get("name", "")).strip()[:LONGEST_NAME], str(form.get("password", ""))
    going_to = str(form.get("next", ""))
    state = request.app.state
    keys = (f"name {name}", f"address {client_address(request, state.settings)}")
    wait = state.attempts.wait_seconds(keys)
    if wait > 0:
        problem = speech(request).t("login.wait", span=speech(request).duration(ceil(wait)))
        page = render(request, "login.html", 429, next=going_to, name=name, problem=problem)
        page.headers["Retry-After"] = str(ceil(wait))
        return page
    state.attempts.failed(keys)  # before the slow part, so that many at once get no more tries than one by one
    account = await state.database.fetch_one("find_account", name=name.replace("\0", ""))
    async with state.hashing:
        is_right = await asyncio.to_thread(passwords.verifies, password, account["password_hash"] if account else None)
    if account is None or not is_right:
        log.warning("login refused", address=client_address(request, state.settings))
        problem = speech(request).t("login.refused")
        return render(request, "login.html", 401, next=going_to, name=name, problem=problem)
    state.attempts.succeeded(keys[0])
    state.attempts.forgive(keys[1])
    return await _open_session(request, account["name"], going_to)


async def log_out(request: Request) -> Response:
    """Ends this session, in the database too."""
    token = session_token(request)
    if token is not None:
        await request.app.state.database.fetch_all("close_session", token_hash=digest(token))
    response = RedirectResponse(url_maker(request)("login"), 303)
    for name in (COOKIE, SECURE_COOKIE):
        response.delete_cookie(name, path="/", secure=name == SECURE_COOKIE, httponly=True, samesite="lax")
    return response


async def _open_session(request: Request, account: str, going_to: str) -> Response:
    settings, database = request.app.state.settings, request.app.state.database
    old, token = session_token(request), secrets.token_urlsafe(TOKEN_BYTES)
    if old is not None:
        await database.fetch_all("close_session", token_hash=digest(old))
    hours = {"lifetime_hours": settings.session_hours, "idle_hours": settings.idle_hours}
    async with database.acting_as(account) as session:
        await session.fetch_all("open_session", account=account, token_hash=digest(token), **hours)
        await session.fetch_all("record_audit", action="account.login", subject=account)
    log.info("logged in", account=account)
    response = RedirectResponse(_target(request, going_to), 303)
    response.set_cookie(
        cookie_name(request), token, path="/", httponly=True, samesite="lax", secure=is_encrypted(request, settings)
    )
    return response


def _target(request: Request, wanted: str | None) -> str:
    """A path of ours to go on to: nothing that a browser could read as another site."""
    root_path: str = request.scope.get("root_path", "")
    if not wanted or not leads_inside(wanted):
        return root_path + "/"
    parts = urlsplit(wanted)
    return root_path + parts.path + (f"?{parts.query}" if parts.query else "")


routes = [
    Route("/login", login_page, name="login"),
    Route("/login", log_in, methods=["POST"], name="log_in"),
    Route("/logout", log_out, methods=["POST"], name="log_out"),
]
