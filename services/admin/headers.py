"""Headers of every response, and the Host header of every request (DNS rebinding)."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.admin.settings import AdminSettings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
)


class FixedHeaders:
    """Sets ADMIN_ROOT_PATH, refuses a Host that is not ours, and puts the security headers on whatever is sent."""

    def __init__(self, app: ASGIApp, settings: AdminSettings) -> None:
        self._app, self._settings, self._hosts = app, settings, settings.hosts
        self._headers = {
            "Content-Security-Policy": POLICY.format(ancestors=settings.frame_ancestors),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        if settings.frame_ancestors == "'none'":
            self._headers["X-Frame-Options"] = "DENY"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        root_path = scope["root_path"] = self._settings.root_path
        if root_path and not f"{scope['path']}/".startswith(f"{root_path}/"):
            scope["path"] = root_path + scope["path"]  # the proxy took it away; ASGI wants it there

        is_static = scope["path"].startswith(f"{root_path}/static/")  # asked again each time, sent when it has changed

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-cache" if is_static else "no-store")
            await send(message)

        host = host_name(Headers(scope=scope).get("host", ""))
        if host not in self._hosts:
            text = f"The host {host[:100]!r} is not served here. Next: add it to ADMIN_HOSTS\n"
            await PlainTextResponse(text, status_code=421)(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)


def host_name(host: str) -> str:
    """A Host header without its port, in lower case."""
    name = host.lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.rpartition(":")[0] if ":" in name else name
