"""Where a request comes from: whether its own site sent it, and which client stands behind a trusted proxy."""

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from services.admin.settings import AdminSettings, Network

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def is_from_own_site(request: HTTPConnection) -> bool:
    """Whether a page of ours sent this request.

    Browsers tell by Sec-Fetch-Site; on plain HTTP to a name that is not loopback they send none of it, but an Origin,
    whose host must then be the Host. A request with neither is no browser's form, and has to use the API.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    return origin is not None and bool(host) and urlsplit(origin).netloc.lower() == host.lower()


def leads_inside(path: str) -> bool:
    """Whether a path that came with a request stays on this site, however a browser reads it."""
    return path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path


def is_proxy(address: str, networks: tuple[Network, ...]) -> bool:
    """Whether an address is one of the trusted ones."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)


def peer_address(request: HTTPConnection) -> str:
    """Who opened the connection."""
    return request.client.host if request.client else ""


def client_address(request: HTTPConnection, settings: AdminSettings) -> str:
    """Who asks: of X-Forwarded-For the last address that is no proxy of ours, where a proxy of ours sends it."""
    address = peer_address(request)
    forwarded = [item.strip() for line in request.headers.getlist("x-forwarded-for") for item in line.split(",")]
    while is_proxy(address, settings.proxies) and forwarded:
        address = forwarded.pop()
    return address[:100]


def is_encrypted(request: HTTPConnection, settings: AdminSettings) -> bool:
    """Whether the browser speaks TLS, with us or with a proxy of ours."""
    if is_proxy(peer_address(request), settings.proxies):
        return request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
    return request.url.scheme == "https"
