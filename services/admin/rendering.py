"""From a template and its values to a response: `render(request, "overview.html", rows=rows)`.

Every template sees `account`, `can_operate`, `t`, `number`, `money`, `duration`, `time`, `ago`, `day`, `now`, `doing`,
`url`, `nav`, `here`, `zone` and `environment`, whatever else it is given. A macro that uses one of them is
imported `with context`.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

import jinja2
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from services.admin.access.accounts import Account
from services.admin.messages import first_line
from services.admin.settings import AdminSettings
from services.admin.words import Speech, all_words, doing, preferred_language

NOTICE_COOKIE = "jobbko_notice"
NOTICE_SECONDS = 60
NAVIGATION = (
    "overview", "jobs", "failed_jobs", "enqueue", "workers", "schedules", "statistics", "spend", "audit",
)  # fmt: skip
FOR_OPERATORS = {"enqueue"}  # of these
PATH_SIGNS = "/:@!$&'()*+,;=~"  # RFC 3986: what may stand in a path as it is
LIVE_HEADER = "x-live"  # a request of live.js, which must not use up what a person has not read

_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


def ident(text: str) -> str:
    """A text as part of an element's id: letters and digits stay, of the rest the numbers."""
    return "".join(sign if sign.isascii() and sign.isalnum() else f"-{ord(sign):x}" for sign in text)


_templates.filters |= {"ident": ident, "first_line": first_line}


def speech(request: Request) -> Speech:
    """Language and zone for this request."""
    settings: AdminSettings = request.app.state.settings
    language = settings.language
    if language == "auto":
        language = preferred_language(request.headers.get("accept-language", ""))
    return Speech(language, settings.zone, datetime.now(UTC))


def url_maker(request: Request) -> Callable[..., str]:
    """`url("job", id=…)`: the path of a page by its name, below ADMIN_ROOT_PATH."""
    root_path: str = request.scope.get("root_path", "")

    def url(name: str, /, **values: Any) -> str:
        return quote(root_path + str(request.app.url_path_for(name, **values)), safe=PATH_SIGNS)

    return url


def render(request: Request, template: str, /, status_code: int = 200, **context: Any) -> HTMLResponse:
    """A page from a template."""
    saying = speech(request)
    account: Account | None = getattr(request.state, "account", None)
    settings: AdminSettings = request.app.state.settings
    notice = None if LIVE_HEADER in request.headers else _notice(request)
    page = _templates.get_template(template).render(
        account=account,
        can_operate=account is not None and account.is_operator,
        language=saying.language,
        t=saying.t, number=saying.number, money=saying.money, duration=saying.duration,
        time=saying.time, ago=saying.ago, day=saying.day, now=saying.now,
        doing=lambda job: doing(saying.language, job),
        url=url_maker(request),
        nav=_navigation(request, account),
        here=getattr(request.scope.get("route"), "name", ""),
        environment=settings.environment,
        zone=settings.time_zone,
        notice=None if notice is None else saying.t(notice[0], **notice[1]),
        cursor=None if account is None else account.cursor,
        **context,
    )  # fmt: skip
    response = HTMLResponse(page, status_code=status_code, headers={"Content-Language": saying.language})
    if notice is not None:
        response.delete_cookie(NOTICE_COOKIE, path=_cookie_path(request))
    return response


def redirect(
    request: Request, name: str, /, *, query: dict[str, str] | None = None, notice: str | None = None,
    values: dict[str, object] | None = None, **path: Any,
) -> Response:  # fmt: skip
    """After a POST: on to a page, which tells once what was done (`notice` is a key of words, with its values)."""
    target = url_maker(request)(name, **path) + (f"?{urlencode(query)}" if query else "")
    response = RedirectResponse(URL(target), status_code=303)
    if notice is not None:
        text = quote(json.dumps([notice, values or {}], ensure_ascii=False, default=str))
        response.set_cookie(
            NOTICE_COOKIE, text, max_age=NOTICE_SECONDS, path=_cookie_path(request), httponly=True, samesite="lax"
        )
    return response


def _notice(request: Request) -> tuple[str, dict[str, Any]] | None:
    """What the last POST has done. A cookie that is not of ours is no notice."""
    text = request.cookies.get(NOTICE_COOKIE)
    if not text:
        return None
    try:
        key, values = json.loads(unquote(text))
        Speech("nb", request.app.state.settings.zone, datetime.now(UTC)).t(key, **values)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
    return (key, values) if key in all_words() else None


def _navigation(request: Request, account: Account | None) -> list[tuple[str, str]]:
    """Name and path of each page in the navigation that is for this account."""
    url, is_operator = url_maker(request), account is not None and account.is_operator
    return [(name, url(name)) for name in NAVIGATION if is_operator or name not in FOR_OPERATORS]


def _cookie_path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"
