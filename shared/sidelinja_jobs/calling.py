"""Calls a handler with a claimed job, and makes an outcome of whatever it does."""

from collections.abc import Callable
from typing import Any

import msgspec

from sidelinja_jobs.context import Context
from sidelinja_jobs.database import Link, QueueConnection
from sidelinja_jobs.errors import PermanentError, RefusedError
from sidelinja_jobs.json_text import decode_payload, encode_result
from sidelinja_jobs.models import Claim, Job, Rules
from sidelinja_jobs.outcomes import Completed, Outcome, outcome_of
from sidelinja_jobs.run import Run

Handler = Callable[[Job[Any], Context], Any]
Guarded = Callable[[Run, Callable[[], Any]], Any]  # calls a function in which the run may be interrupted


class Caller:
    """Of the handler of one job type."""

    def __init__(
        self,
        handle: Handler,
        payload_type: type[Any],
        rules: Rules,
        link: Link,
        connect: Callable[[str], QueueConnection],
        log: Any,
    ) -> None:
        self._handle, self._rules = handle, rules
        self._decoder = msgspec.json.Decoder(payload_type)
        self._link, self._connect, self._log = link, connect, log

    def outcome(self, run: Run, guarded: Guarded) -> Outcome:
        """What became of the run; never raises."""
        context = Context(run, self._link, self._connect, self._log)
        try:
            job = self._job(run)
            result = guarded(run, lambda: self._handle(job, context))
            return Completed(encode_result(result), context.writes)
        except BaseException as error:  # also SystemExit, a cancelled task, a group: none of them ends the worker
            return outcome_of(error)

    def _job(self, run: Run) -> Job[Any]:
        claim = run.claim
        return Job(
            id=claim.id,
            job_type=run.job_type,
            payload=self._payload(claim, run.job_type),
            attempt=claim.attempts + 1,
            max_attempts=claim.max_attempts,
            priority=claim.priority,
            created_at=claim.created_at,
            scheduled_for=claim.scheduled_for,
            parent_id=claim.parent_id,
        )

    def _payload(self, claim: Claim, job_type: str) -> Any:
        if claim.payload_text is None:
            raise PermanentError(
                f"payload of {claim.payload_bytes} bytes is over the limit of {self._rules.payload_limit_bytes} bytes",
                error_class="payload_too_large",
            )
        try:
            payload = decode_payload(claim.payload_text, self._decoder)
        except (RefusedError, msgspec.MsgspecError, RecursionError) as error:
            raise PermanentError(f"payload does not fit {job_type}: {error}", error_class="bad_payload") from error
        msgspec.structs.force_setattr(claim, "payload_text", "")  # read once, and as large as the payload itself
        return payload
