"""Settings of the forwarder. A sink exists when its URL is set; without any, the forwarder has nothing to do.

URLs come from whoever runs the stack and from nowhere else: no payload, job or page can name one. They are secret
all the same, since many receivers put a key into the path.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from services.admin.settings import listed
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.settings import WorkerSettings, setting

STATUSES = ("pending", "running", "completed", "error", "retry")
INCLUDES = ("payload", "result")
# Names that no public registry gives out: of this network, this machine, this Compose project.
_NEAR_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test")


@dataclass(frozen=True)
class DeliverySettings(WorkerSettings):
    """What the forwarder reads."""

    webhook_url: str | None = setting(
        "DELIVERY_WEBHOOK_URL", default=None, secret=True, empty_file_is_unset=True, help="receiver of the events"
    )
    webhook_secret: str | None = setting(
        "DELIVERY_WEBHOOK_SECRET", default=None, secret=True, empty_file_is_unset=True, help="whsec_… signs them"
    )
    webhook_old_secret: str | None = setting(
        "DELIVERY_WEBHOOK_OLD_SECRET", default=None, secret=True, empty_file_is_unset=True, help="signs them, too"
    )
    spacetimedb_url: str | None = setting(
        "DELIVERY_SPACETIMEDB_URL", default=None, secret=True, empty_file_is_unset=True, help="https://HOST"
    )
    spacetimedb_database: str | None = setting("DELIVERY_SPACETIMEDB_DATABASE", default=None, help="name or identity")
    spacetimedb_reducer: str = setting("DELIVERY_SPACETIMEDB_REDUCER", default="job_event")
    spacetimedb_token: str | None = setting(
        "DELIVERY_SPACETIMEDB_TOKEN", default=None, secret=True, empty_file_is_unset=True, help="of the forwarder"
    )
    job_types: str = setting("DELIVERY_JOB_TYPES", default="", help="only these, comma between; empty = all")
    statuses: str = setting("DELIVERY_STATUSES", default="", help="only changes to these; empty = all")
    include: str = setting("DELIVERY_INCLUDE", default="", help="payload, result: sent, too")
    source: str = setting("DELIVERY_SOURCE", default="/jobbko", help="what the events' source begins with")
    allow_http: bool = setting("DELIVERY_ALLOW_HTTP", default=False, help="true: plain http to any address")
    try_seconds: float = setting(
        "DELIVERY_TIMEOUT_SECONDS", default=15.0, minimum=0.1, maximum=60, help="for one try, in all"
    )
    retry_seconds: str = setting("DELIVERY_RETRY_SECONDS", default="5,30,120,600,3600", help="waits between tries")
    give_up_seconds: float = setting(
        "DELIVERY_GIVE_UP_SECONDS", default=259200.0, minimum=0, maximum=2592000, help="then an event is parked"
    )

    @property
    def has_sink(self) -> bool:
        return self.webhook_url is not None or self.spacetimedb_url is not None

    @property
    def waits_seconds(self) -> tuple[float, ...]:
        """The wait after each failed try; the last one goes for all that follow."""
        return tuple(float(part) for part in listed(self.retry_seconds))


def check_settings(settings: DeliverySettings) -> None:
    """What no single setting can tell.

    Raises:
        SettingsError: naming every problem.
    """
    problems = [problem for problem in _problems(settings) if problem]
    if problems:
        raise SettingsError("settings: " + "; ".join(problems))


def _problems(settings: DeliverySettings) -> list[str | None]:
    found: list[str | None] = [
        _unknown("DELIVERY_STATUSES", settings.statuses, STATUSES),
        _unknown("DELIVERY_INCLUDE", settings.include, INCLUDES),
        _bad_waits(settings.retry_seconds),
    ]
    if settings.webhook_url is not None:
        found.append(url_problem("DELIVERY_WEBHOOK_URL", settings.webhook_url, settings.allow_http))
        if settings.webhook_secret is None:
            found.append("DELIVERY_WEBHOOK_SECRET is not set: without a signature the receiver could believe anybody")
    if settings.spacetimedb_url is not None:
        found.append(url_problem("DELIVERY_SPACETIMEDB_URL", settings.spacetimedb_url, settings.allow_http))
        if not settings.spacetimedb_database:
            found.append("DELIVERY_SPACETIMEDB_DATABASE is not set: the database's name or identity")
        if settings.spacetimedb_token is None:
            found.append("DELIVERY_SPACETIMEDB_TOKEN is not set: without one every call has another identity")
    return found


def _unknown(name: str, text: str, known: tuple[str, ...]) -> str | None:
    unknown = [part for part in listed(text) if part not in known]
    return f"{name} names {', '.join(unknown)}, expected some of {', '.join(known)}" if unknown else None


def _bad_waits(text: str) -> str | None:
    try:
        waits = [float(part) for part in listed(text)]
    except ValueError:
        waits = []
    if waits and all(0 <= wait <= 86400 for wait in waits):
        return None
    return f"DELIVERY_RETRY_SECONDS is {text!r}, expected seconds up to 86400 with commas between, such as 5,30,120"


def url_problem(name: str, url: str, allow_http: bool) -> str | None:
    """What is wrong with the address of a receiver, without repeating it; None where nothing is."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        return f"{name} is no URL"
    if parts.scheme not in ("https", "http") or not host or not url.isprintable() or " " in url:
        return f"{name} is no URL, expected https://HOST/PATH"
    if parts.username is not None or parts.password is not None:
        return f"{name} holds a user name: take it out, the signature or the token tells who calls"
    if parts.scheme == "http" and not (allow_http or is_near(host)):
        return (
            f"{name} is plain http to {host}, where everybody on the way can read: use https, "
            "or set DELIVERY_ALLOW_HTTP=true"
        )
    return None


def is_near(host: str) -> bool:
    """Whether a host is this machine, this network or this Compose project, by its address or the form of its name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_NEAR_ENDINGS)
    return address.is_loopback or address.is_private


def origin(url: str) -> str:
    """Scheme, host and port: what may be shown of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
