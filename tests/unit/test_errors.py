"""The errors of the queue: their tree, how database errors become ours, how they pass through a pipe."""

import pickle
from datetime import UTC, datetime

import psycopg
import pytest

from sidelinja_jobs import errors
from sidelinja_jobs.errors import (
    ComeBackLaterError,
    HandlerError,
    JobQueueError,
    JobStopped,
    LeaseLostError,
    NotAllowedError,
    NotFoundError,
    NotReadyError,
    PauseJobTypeError,
    PermanentError,
    RefusedError,
    RetryLaterError,
    StopReason,
    translate,
)
from tests.databases import Database

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def database_error(database: Database, code: str, hint: str = "") -> psycopg.Error:
    """An error as the server sends it."""
    using = f", hint = '{hint}'" if hint else ""
    with pytest.raises(psycopg.Error) as caught:
        database.rows(f"do $$ begin raise exception 'the message' using errcode = '{code}'{using}; end $$")
    return caught.value


def test_every_error_has_one_base_and_the_tree_stands_in_the_docstring() -> None:
    tree = errors.__doc__ or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, BaseException) and name != "JobStopped":
            assert issubclass(kind, JobQueueError)
            assert name in tree
    assert not issubclass(JobStopped, Exception)
    assert "JobStopped (BaseException)" in tree


OURS = {"JQ001": LeaseLostError, "JQ002": RefusedError, "JQ004": NotFoundError, "42501": NotAllowedError} | {
    "JQ005": NotReadyError
}


def test_the_queues_own_answers_become_its_errors_and_others_stay_what_they_are(database: Database) -> None:
    for code, kind in {**OURS, "23514": RefusedError}.items():
        assert type(translate(database_error(database, code))) is kind
        assert str(translate(database_error(database, code, "the remedy"))) == "the message. the remedy"
    for code in ("23505", "40001", "57014", "XX000", "JQ003"):
        assert translate(database_error(database, code)) is None


def test_an_error_without_a_code_stays_what_it_is() -> None:
    assert translate(psycopg.OperationalError("server gone")) is None


HANDLER_ERRORS: list[HandlerError] = [
    PermanentError("m"),
    PermanentError("m", error_class="bad_file"),
    RetryLaterError("m", seconds=5),
    RetryLaterError("m", seconds=5, error_class="quota"),
    ComeBackLaterError("m", until=LATER),
    PauseJobTypeError("m", until=LATER, origin="budget"),
    PauseJobTypeError("m", until=LATER, error_class="auth"),
]


@pytest.mark.parametrize("error", HANDLER_ERRORS)
def test_a_handlers_error_survives_a_pipe(error: HandlerError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert type(again) is type(error)
    assert (str(again), again.error_class, vars(again)) == (str(error), error.error_class, vars(error))


def test_a_handlers_error_of_a_subclass_survives_a_pipe() -> None:
    again = pickle.loads(pickle.dumps(BadFileError("a.mp3")))  # noqa: S301

    assert (type(again), str(again), again.path, again.error_class) == (
        BadFileError,
        "cannot read a.mp3",
        "a.mp3",
        "permanent",
    )


class BadFileError(PermanentError):
    def __init__(self, path: str) -> None:
        super().__init__(f"cannot read {path}")
        self.path = path


def test_error_classes_are_what_groups_go_by() -> None:
    assert [error.error_class for error in HANDLER_ERRORS] == [
        "permanent", "bad_file", "retry_later", "quota", "postponed", "paused", "auth",
    ]  # fmt: skip


def test_a_stop_carries_its_reason() -> None:
    assert JobStopped(StopReason.LOST).reason is StopReason.LOST
    assert str(JobStopped(StopReason.SHUTDOWN)) == "shutdown"
