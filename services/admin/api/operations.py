"""One operation of the API as data: path, scope, what it takes and gives. Requests are checked by it, the OpenAPI
document is made of it, so neither can drift from the other.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from services.admin.api.authentication import TokenCheck, check_scope
from services.admin.api.bodies import read_body, read_parameters
from services.admin.api.problems import ProblemError, field_error
from services.admin.api.shapes import Nothing
from services.admin.api.tokens import Token
from services.admin.database import Database
from sidelinja_jobs.errors import JobQueueError, NotFoundError, RefusedError
from sidelinja_jobs.log import get_logger

log = get_logger()
PREFIX = "/api/v1"
STREAM = "text/event-stream"
SMALL = 64 * 1024  # bytes of a body without payload
_UNAVAILABLE = ("the database does not answer", "try again in some seconds")


@dataclass(frozen=True)
class Call:
    """A request that has passed all checks."""

    request: Request
    token: Token
    parameters: Any
    body: Any

    @property
    def database(self) -> Database:
        database: Database = self.request.app.state.database
        return database

    @property
    def job_id(self) -> UUID:
        """The id in the path.

        Raises:
            ProblemError: it is none.
        """
        try:
            return msgspec.convert(self.request.path_params["id"], UUID)
        except msgspec.ValidationError as error:
            raise field_error("invalid_parameter", "id", "it is no UUID", "correct the path") from error


@dataclass(frozen=True)
class Answer:
    """A struct and how it is sent."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Awaitable[Answer | Response]]


@dataclass(frozen=True)
class Operation:
    """`scope` None: anyone may ask. `problems` are those of its own; the others follow from what it takes."""

    method: str
    path: str
    name: str
    summary: str
    handler: Handler
    scope: str | None
    gives: type[Any] | None  # None: any JSON
    status: int = 200
    also: tuple[int, ...] = ()  # further status with the same struct
    takes: type[msgspec.Struct] | None = None
    limit: int = SMALL
    parameters: type[msgspec.Struct] = Nothing
    problems: tuple[str, ...] = ()
    media_type: str = "application/json"
    description: str = ""

    @property
    def all_problems(self) -> tuple[str, ...]:
        """The codes of all problems that it can answer with."""
        codes = ["invalid_parameter", "database_unavailable", "internal_error"]
        if self.scope:
            codes += ["no_token", "wrong_token", "missing_scope", "too_many_failures"]
        if self.takes:
            codes += ["invalid_json", "invalid_body", "body_too_large", "body_too_slow", "wrong_content_type"]
        return (*codes, *self.problems)


def endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    """What Starlette calls for the operation: checks, the handler, and every failure as a problem document."""

    async def run(request: Request) -> Response:
        try:
            return _sent(operation, await operation.handler(await _checked(operation, request)))
        except ProblemError as problem:
            return problem.response(docs_path(request))
        except Exception as error:  # the edge: whatever it is, the answer is a problem document
            return told(error, request).response(docs_path(request))

    return run


def root_path(request: Request) -> str:
    """The prefix that a proxy serves us below; inside a mount, Starlette adds the mount's own path to it."""
    path: str = request.scope.get("app_root_path", request.scope.get("root_path", ""))
    return path.removesuffix(PREFIX)


def docs_path(request: Request) -> str:
    """The page that explains the codes."""
    return f"{root_path(request)}{PREFIX}/docs"


def told(error: Exception, request: Request) -> ProblemError:
    """A failure as a problem."""
    match error:
        case HTTPException(status_code=413):
            return ProblemError("body_too_large", "the body is too large", "send less")
        case HTTPException(status_code=405):
            return ProblemError("method_not_allowed", f"{request.method} is not for this path", "see the documentation")
        case HTTPException(status_code=404):
            return ProblemError("no_such_path", "there is nothing at this path", "see the documentation")
        case NotFoundError():
            return ProblemError(
                "no_such_job_type" if "job type" in str(error) else "no_such_job", str(error), "GET /jobs"
            )
        case RefusedError():
            return ProblemError("refused", str(error), "correct it")
        case psycopg.errors.DataError() | psycopg.errors.IntegrityError() | psycopg.errors.ProgramLimitExceeded():
            message = error.diag.message_primary or str(error)
            return ProblemError("refused", f"the database refused this: {message}", "correct it")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            log.warning("database trouble", path=request.url.path, error=str(error).strip())
            return ProblemError("database_unavailable", *_UNAVAILABLE, headers={"Retry-After": "5"})
    log.error("request failed", method=request.method, path=request.url.path, exc_info=error)
    named = "the database's login may not do this" if isinstance(error, JobQueueError) else "the log says which"
    return ProblemError("internal_error", f"a fault in this program: {named}", "tell the operator")


async def sent_token(request: Request, *, accepts_basic: bool = False) -> Token:
    """The valid token of a request.

    Raises:
        ProblemError: as `TokenCheck.token_of`.
    """
    database: Database = request.app.state.database
    tokens: TokenCheck = request.app.state.token_check

    async def look_up(fingerprint: bytes) -> Token | None:
        row = await database.fetch_one("api_use_token", fingerprint=fingerprint)
        return Token(row["name"], row["scopes"]) if row else None

    return await tokens.token_of(request, look_up, accepts_basic=accepts_basic)


_NOBODY = Token("", ())


async def _checked(operation: Operation, request: Request) -> Call:
    token = _NOBODY
    if operation.scope:
        token = await sent_token(request)
        check_scope(token, operation.scope)
    parameters = read_parameters(request.query_params, operation.parameters)
    body = await read_body(request, operation.takes, operation.limit) if operation.takes else None
    return Call(request, token, parameters, body)


def _sent(operation: Operation, answer: Answer | Response) -> Response:
    if isinstance(answer, Response):
        return answer
    headers = {"Cache-Control": "no-store"} | dict(answer.headers)
    return Response(msgspec.json.encode(answer.value), answer.status, headers, operation.media_type)
