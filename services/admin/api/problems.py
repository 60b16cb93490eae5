"""What goes wrong, as RFC 9457 problem documents: a stable `code`, where it is, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
_LONGEST_DETAIL = 2000  # a database's message may quote a payload


@dataclass(frozen=True)
class Kind:
    """One kind of problem; its code never changes its meaning."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "invalid_json": Kind(400, "The body is not JSON"),
    "no_token": Kind(401, "No token was sent"),
    "wrong_token": Kind(401, "The token is not valid"),
    "missing_scope": Kind(403, "The token may not do this"),
    "no_such_path": Kind(404, "There is nothing at this path"),
    "no_such_job": Kind(404, "There is no such job"),
    "no_such_job_type": Kind(404, "There is no such job type"),
    "method_not_allowed": Kind(405, "This path does not know the method"),
    "body_too_slow": Kind(408, "The body did not arrive in time"),
    "not_possible": Kind(409, "Not possible in the state that it is in"),
    "not_completed": Kind(409, "The job has not ended yet"),
    "job_failed": Kind(409, "The job ended in error"),
    "cursor_expired": Kind(410, "The cursor fits no more"),
    "body_too_large": Kind(413, "The body is too large"),
    "wrong_content_type": Kind(415, "The body is not sent as JSON"),
    "invalid_parameter": Kind(422, "A parameter is wrong"),
    "invalid_body": Kind(422, "A field of the body is wrong"),
    "invalid_payload": Kind(422, "The job type refuses this payload"),
    "unknown_job_type": Kind(422, "Nobody works this job type"),
    "refused": Kind(422, "The database refused this"),
    "too_many_failures": Kind(429, "Too many wrong tokens"),
    "internal_error": Kind(500, "A fault in this program"),
    "busy": Kind(503, "Too many requests of this kind wait already"),
    "database_unavailable": Kind(503, "The database does not answer"),
}


class FieldProblem(msgspec.Struct, frozen=True):
    """What is wrong with one field or parameter, by its place: `payload.path`, `jobs[3].priority`."""

    field: str
    message: str


class ProblemDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem as RFC 9457 has it, with the extensions code, next_step and errors."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    next_step: str = ""
    errors: tuple[FieldProblem, ...] = ()


class ProblemError(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        code: str,
        detail: str,
        next_step: str = "",
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.next_step = next_step
        self.errors = errors
        self.headers = dict(headers or {})

    def response(self, docs_path: str) -> Response:
        """The answer; `docs_path` is the page that explains the codes."""
        kind = KINDS[self.code]
        document = ProblemDocument(
            type=f"{docs_path}#{self.code}",
            title=kind.title,
            status=kind.status,
            detail=_cut(self.detail),
            code=self.code,
            next_step=_cut(self.next_step),
            errors=tuple(FieldProblem(error.field, _cut(error.message)) for error in self.errors),
        )
        return Response(
            msgspec.json.encode(document),
            kind.status,
            headers=self.headers | {"Cache-Control": "no-store"},
            media_type=MEDIA_TYPE,
        )


def field_error(code: str, field: str, message: str, next_step: str) -> ProblemError:
    """The problem of one field or parameter."""
    return ProblemError(code, f"{field}: {message}", next_step, errors=[FieldProblem(field, message)])


def _cut(text: str) -> str:
    """Text that every reader of JSON takes, of a bounded length."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"
