"""Settings of the admin view. What is a list is written with commas; docs/admin.md says what each one is for."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.settings import DatabaseSettings, load_settings, setting

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ANCESTOR = re.compile(r"'none'|'self'|https?://[A-Za-z0-9.*-]+(:\d+|:\*)?")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]")
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")


@dataclass(frozen=True)
class AdminSettings(DatabaseSettings):
    """What `python -m services.admin` reads."""

    host: str = setting("ADMIN_HOST", default="127.0.0.1", help="address to listen on")
    port: int = setting("ADMIN_PORT", default=8080, minimum=0, maximum=65535, help="port to listen on; 0 = any")
    admin_password: str | None = setting(
        "ADMIN_PASSWORD", default=None, secret=True, help="of the account `admin`, made at start"
    )
    hosts_text: str = setting("ADMIN_HOSTS", default="localhost,127.0.0.1,[::1]", help="names it is reached by")
    root_path: str = setting("ADMIN_ROOT_PATH", default="", help="path below which a proxy serves it, like /jobbko")
    language: str = setting("ADMIN_LANGUAGE", default="auto", choices=("auto", "nb", "en"), help="auto: the browser's")
    time_zone: str = setting("ADMIN_TIME_ZONE", default="Europe/Oslo", help="zone in which times are shown")
    environment: str = setting("ADMIN_ENVIRONMENT", default="", help="word on a badge, like test")
    ancestors_text: str = setting("ADMIN_FRAME_ANCESTORS", default="none", help="sites that may show it in a frame")
    proxies_text: str = setting("ADMIN_PROXY_ADDRESSES", default="", help="addresses or networks of trusted proxies")
    proxy_header: str = setting("ADMIN_PROXY_HEADER", default="", help="header in which a proxy names the person")
    proxy_new_accounts: str = setting(
        "ADMIN_PROXY_NEW_ACCOUNTS", default="refuse", choices=("refuse", "viewer", "operator"),
        help="what a person becomes whom the proxy names and no account knows",
    )  # fmt: skip
    session_hours: float = setting("ADMIN_SESSION_HOURS", default=12.0, minimum=0.01, maximum=8760)
    idle_hours: float = setting("ADMIN_IDLE_HOURS", default=2.0, minimum=0.01, maximum=8760)
    live_streams: int = setting("ADMIN_LIVE_STREAMS", default=50, minimum=0, maximum=1000)
    media_root: Path = setting("MEDIA_ROOT", default=Path("/media"), help="folder that payloads' paths are below")
    day_budget_usd: float | None = setting("OPENROUTER_DAY_BUDGET_USD", default=None, minimum=0)
    metrics_port: int = setting("METRICS_PORT", default=9100, minimum=0, maximum=65535, help="0 = no metrics")
    metrics_host: str = setting("METRICS_HOST", default="0.0.0.0", help="address of the metrics")  # noqa: S104
    health_file: Path = setting("HEALTH_FILE", default=Path("/tmp/healthy"), help="touched while well")  # noqa: S108
    log_format: str = setting("LOG_FORMAT", default="auto", choices=("auto", "json", "console"))
    log_level: str = setting("LOG_LEVEL", default="info", choices=("debug", "info", "warning", "error"))

    @property
    def hosts(self) -> frozenset[str]:
        """Names that the Host header may have, in lower case, without port."""
        return frozenset(name.lower() for name in listed(self.hosts_text))

    @property
    def frame_ancestors(self) -> str:
        """As the policy writes them. An .env file takes quotes away, so that none and self are known without, too."""
        return " ".join(f"'{word}'" if word in ("none", "self") else word for word in self.ancestors_text.split())

    @property
    def proxies(self) -> tuple[Network, ...]:
        """Whom X-Forwarded-For, X-Forwarded-Proto and the header of a login are believed from."""
        return tuple(ipaddress.ip_network(item, strict=False) for item in listed(self.proxies_text))

    @property
    def zone(self) -> ZoneInfo:
        """The zone in which times are shown."""
        return ZoneInfo(self.time_zone)

    @property
    def is_on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_settings(environ: Mapping[str, str] | None = None) -> AdminSettings:
    """The settings from the environment.

    Raises:
        SettingsError: naming every variable that is missing or wrong.
    """
    settings = load_settings(AdminSettings, environ)
    problems = _problems(settings)
    if problems:
        raise SettingsError("settings: " + "; ".join(problems))
    return settings


def _problems(settings: AdminSettings) -> list[str]:
    found = []
    for name in listed(settings.hosts_text):
        if not _HOST.fullmatch(name):
            found.append(f"ADMIN_HOSTS holds {name!r}, expected names without scheme and port, like jobs.example.no")
    if not settings.hosts:
        found.append("ADMIN_HOSTS is empty, expected the names that the view is reached by")
    if not _ROOT_PATH.fullmatch(settings.root_path):
        found.append(f"ADMIN_ROOT_PATH is {settings.root_path!r}, expected a path like /jobbko, without / at its end")
    try:
        _ = settings.zone
    except (ZoneInfoNotFoundError, ValueError):
        found.append(f"ADMIN_TIME_ZONE is {settings.time_zone!r}, expected a zone like Europe/Oslo")
    for word in settings.frame_ancestors.split():
        if not _ANCESTOR.fullmatch(word):
            found.append(f"ADMIN_FRAME_ANCESTORS holds {word!r}, expected none, self or https://suite.example.no")
    try:
        _ = settings.proxies
    except ValueError as error:
        found.append(f"ADMIN_PROXY_ADDRESSES: {error}")
    return found + _proxy_problems(settings)


def _proxy_problems(settings: AdminSettings) -> list[str]:
    if settings.proxy_header and not _HEADER.fullmatch(settings.proxy_header):
        return [f"ADMIN_PROXY_HEADER is {settings.proxy_header!r}, expected the name of a header, like Remote-User"]
    if settings.proxy_header and not settings.proxies_text:
        return ["ADMIN_PROXY_HEADER is set and ADMIN_PROXY_ADDRESSES is not: set whom the header is believed from"]
    return []


def listed(text: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
