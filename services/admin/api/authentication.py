"""Who asks: the bearer token of a request, held against the database.

Cookies are never looked at, so a foreign page in a browser that is logged in can do nothing here.
"""

import base64
import binascii
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from services.admin.access.digests import digest
from services.admin.access.origin import client_address
from services.admin.api.problems import ProblemError
from services.admin.api.tokens import Failures, Token, has_form
from sidelinja_jobs.log import get_logger

log = get_logger()

_NEXT = "send the header Authorization: Bearer jobbko_…; `jobs token add` makes a token"
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="jobbko"'}
_MOST_KNOWN = 1000

Lookup = Callable[[bytes], Awaitable[Token | None]]


@dataclass
class TokenCheck:
    """Asks the database for each request: a token that was revoked is refused at once."""

    failures: Failures = field(default_factory=Failures)
    _known: set[bytes] = field(default_factory=set)

    async def token_of(self, request: Request, look_up: Lookup, *, accepts_basic: bool = False) -> Token:
        """The token of a request.

        `accepts_basic`: also as the password of HTTP Basic, for programs such as feed readers that know no other way.

        Raises:
            ProblemError: there is none, it is not valid, or this address sent too many that were not.
        """
        text = _sent_token(request, accepts_basic)
        address = client_address(request, request.app.state.settings)
        fingerprint = digest(text)
        if fingerprint not in self._known and (wait := self.failures.wait_seconds(address)):
            raise ProblemError(
                "too_many_failures",
                f"{self.failures.most} wrong tokens came from {address} in {self.failures.window_seconds:g} seconds",
                "wait, and check the token",
                headers={"Retry-After": str(math.ceil(wait))},
            )
        token = await look_up(fingerprint) if has_form(text) else None
        if token is None:
            self._known.discard(fingerprint)
            self.failures.add(address)
            log.warning("token refused", address=address, path=request.url.path)
            raise ProblemError(
                "wrong_token",
                "the token is unknown, expired or revoked",
                "see `jobs token list`",
                headers={"WWW-Authenticate": 'Bearer realm="jobbko", error="invalid_token"'},
            )
        if len(self._known) < _MOST_KNOWN:
            self._known.add(fingerprint)
        return token


def check_scope(token: Token, scope: str) -> None:
    """Refuses a token that lacks the scope.

    Raises:
        ProblemError: it does.
    """
    if scope not in token.scopes:
        raise ProblemError(
            "missing_scope",
            f"the token {token.name} has the scopes {', '.join(token.scopes)}; this needs {scope}",
            f"make a token with --scope {scope}: jobs token add",
        )


def _sent_token(request: Request, accepts_basic: bool) -> str:
    header = request.headers.get("authorization")
    if header is None:
        raise ProblemError("no_token", "there is no Authorization header", _NEXT, headers=_CHALLENGE)
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() == "basic" and accepts_basic:
        try:
            return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    raise ProblemError("no_token", "the Authorization header holds no bearer token", _NEXT, headers=_CHALLENGE)
