"""Every answer is judged by one function: a row for each error, and the failures inside a 200."""

from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from openrouter_client.verdicts import Kind
from tests.unit.openrouter_shapes import NOW, answer, failure, judge, unavailable

ROWS = [
    (400, "invalid_request", Kind.PERMANENT, "config"),
    (400, "invalid_prompt", Kind.PERMANENT, "config"),
    (400, "model_not_found", Kind.PERMANENT, "model_unavailable"),
    (400, "wrong_endpoint", Kind.PERMANENT, "config"),
    (400, "context_length_exceeded", Kind.TOO_LONG, "too_long"),
    (400, "string_too_long", Kind.TOO_LONG, "too_long"),
    (400, "token_limit_exceeded", Kind.TOO_LONG, "too_long"),
    (400, "max_tokens_exceeded", Kind.TRUNCATED, "truncated"),
    (400, "refusal", Kind.PERMANENT, "refused"),
    (400, "content_policy_violation", Kind.PERMANENT, "refused"),
    (401, "authentication", Kind.PAUSE, "auth"),
    (401, None, Kind.PAUSE, "auth"),
    (402, "payment_required", Kind.PAUSE, "credits"),
    (402, None, Kind.PAUSE, "credits"),
    (403, "region_restricted", Kind.PERMANENT, "policy_filtered"),
    (403, "permission_denied", Kind.PERMANENT, "config"),
    (403, None, Kind.PERMANENT, "refused"),
    (404, "no_endpoints", Kind.PERMANENT, "model_unavailable"),
    (404, "model_deprecated", Kind.PERMANENT, "model_unavailable"),
    (404, "model_unavailable_upstream", Kind.PERMANENT, "model_unavailable"),
    (404, "privacy_restricted", Kind.PERMANENT, "policy_filtered"),
    (404, "constraint_filtered", Kind.PERMANENT, "policy_filtered"),
    (404, "free_variant_ended", Kind.PERMANENT, "model_unavailable"),
    (408, None, Kind.RETRY, "timeout"),
    (504, "timeout", Kind.RETRY, "timeout"),
    (524, None, Kind.RETRY, "timeout"),
    (409, None, Kind.PERMANENT, "config"),
    (410, None, Kind.PERMANENT, "model_unavailable"),
    (412, "precondition_failed", Kind.PERMANENT, "config"),
    (413, "payload_too_large", Kind.PERMANENT, "too_long"),
    (422, "unprocessable", Kind.PERMANENT, "config"),
    (418, None, Kind.PERMANENT, "config"),
    (429, "rate_limit_exceeded", Kind.RETRY, "rate_limited"),
    (429, "capacity_exhausted", Kind.RETRY, "rate_limited"),
    (499, None, Kind.RETRY, "upstream"),
    (500, "server", Kind.RETRY, "upstream"),
    (500, "unmapped", Kind.RETRY, "upstream"),
    (502, "provider_unavailable", Kind.RETRY, "upstream"),
    (503, "provider_overloaded", Kind.RETRY, "upstream"),
    (503, "temporarily_unavailable", Kind.RETRY, "upstream"),
    (529, "provider_overloaded", Kind.RETRY, "upstream"),
    (529, None, Kind.RETRY, "upstream"),
    (599, None, Kind.RETRY, "upstream"),
]


@pytest.mark.parametrize(("status", "error_type", "kind", "error_class"), ROWS)
def test_each_error_has_its_row(status: int, error_type: str | None, kind: Kind, error_class: str) -> None:
    verdict = judge(status, failure(status, error_type, provider_name="Google"))

    assert (verdict.kind, verdict.error_class, verdict.http_status) == (kind, error_class, status)
    assert "It failed" in verdict.message
    assert verdict.provider == "Google"


@pytest.mark.parametrize(("status", "error_type", "kind", "error_class"), ROWS)
def test_the_same_error_inside_a_200_is_judged_the_same(
    status: int, error_type: str | None, kind: Kind, error_class: str
) -> None:
    body = failure(status, error_type)
    nulls = dict.fromkeys(("id", "object", "created", "model", "choices", "usage"))

    for shape in (body, nulls | body, nulls | {"choices": []} | body, {**answer(), **body}):
        verdict = judge(200, shape)
        assert (verdict.kind, verdict.error_class, verdict.http_status) == (kind, error_class, 200)
        assert "It failed" in verdict.message


@pytest.mark.parametrize("status", [408, 425, 429, 499, 500, 502, 503, 504, 524, 529])
@pytest.mark.parametrize(
    "headers", [{"Retry-After": "40"}, {"X-RateLimit-Reset": str(int((NOW.timestamp() + 40) * 1e3))}]
)
def test_a_named_wait_is_a_coming_back_but_not_after_a_time_out(status: int, headers: dict[str, str]) -> None:
    """A call that timed out may have been paid for, so its repetition has to cost an attempt."""
    verdict = judge(status, failure(status), headers)

    assert verdict.kind is (Kind.RETRY if status in (408, 504, 524) else Kind.COME_BACK)
    assert verdict.wait_seconds == pytest.approx(40)


def test_no_row_but_a_transient_one_waits() -> None:
    for status, error_type, kind, _error_class in ROWS:
        if kind is Kind.PERMANENT:
            assert judge(status, failure(status, error_type), {"Retry-After": "40"}).wait_seconds is None


def test_the_servers_own_clock_counts_for_its_dates() -> None:
    there = NOW + timedelta(hours=3)
    headers = {
        "Date": format_datetime(there, usegmt=True),
        "Retry-After": format_datetime(there + timedelta(seconds=9), usegmt=True),
    }

    assert judge(429, failure(429), headers).wait_seconds == pytest.approx(9)


# The order of belief: availability, then type, then code, then status.


def test_availability_outranks_type_code_and_status() -> None:
    assert judge(404, unavailable("no_endpoints", True)).kind is Kind.RETRY
    assert judge(404, unavailable("no_endpoints", True, retry_after=30)).kind is Kind.COME_BACK
    assert judge(404, unavailable("no_endpoints", True, retry_after=30)).wait_seconds == 30
    refused = judge(503, unavailable("provider_overloaded", False))
    assert (refused.kind, refused.error_class) == (Kind.PERMANENT, "model_unavailable")
    assert judge(503, unavailable("provider_overloaded", None)).kind is Kind.RETRY
    assert judge(503, unavailable("temporarily_unavailable", False), {"Retry-After": "3"}).kind is Kind.PERMANENT


def test_availability_turns_no_missing_key_into_a_retry() -> None:
    body = failure(401, "authentication")
    body["error"]["availability"] = {"retryable": True}

    assert judge(401, body).kind is Kind.PAUSE


def test_type_outranks_code_and_code_outranks_status() -> None:
    assert judge(200, failure(500, "context_length_exceeded")).kind is Kind.TOO_LONG
    assert judge(502, failure(429)).error_class == "rate_limited"
    assert judge(200, failure("429")).error_class == "rate_limited"
    assert judge(200, failure("server_error")).kind is Kind.RETRY
    assert judge(200, failure(None)).kind is Kind.RETRY
    assert judge(429, failure(None)).error_class == "rate_limited"
    assert judge(429, failure(7)).error_class == "rate_limited"


# Failures inside a 200 that have no error object.


@pytest.mark.parametrize("finish", ["error", "stop", None])
def test_an_error_in_a_choice_is_a_failure_whatever_was_said_before(finish: str | None) -> None:
    broken = answer('{"title": "half', finish, error={"code": 502, "message": "The provider disconnected"})
    verdict = judge(200, broken)

    assert (verdict.kind, verdict.error_class, verdict.is_billed) == (Kind.RETRY, "upstream", False)
    assert "The provider disconnected" in verdict.message


@pytest.mark.parametrize(
    ("finish", "native", "kind", "error_class"),
    [
        ("stop", "STOP", Kind.OK, ""),
        ("stop", None, Kind.OK, ""),
        ("tool_calls", None, Kind.OK, ""),
        ("eos", None, Kind.OK, ""),
        ("length", None, Kind.TRUNCATED, "truncated"),
        ("stop", "MAX_TOKENS", Kind.TRUNCATED, "truncated"),
        ("content_filter", "SAFETY", Kind.PERMANENT, "refused"),
        ("error", None, Kind.RETRY, "upstream"),
        (None, None, Kind.RETRY, "upstream"),
    ],
)
def test_each_finish_reason_has_its_meaning(
    finish: str | None, native: str | None, kind: Kind, error_class: str
) -> None:
    """gethouston/houston PR#1211: an error was "unknown"; a content filter is no passing trouble."""
    verdict = judge(200, answer(finish=finish, native_finish_reason=native))

    assert (verdict.kind, verdict.error_class) == (kind, error_class)


def test_length_comes_before_everything_that_is_said() -> None:
    """567-labs/instructor#276: a cut answer was taken for bad JSON and asked for again with the same budget."""
    for content in ('{"a":1}', '{"a":', "", None):
        assert judge(200, answer(content, "length")).kind is Kind.TRUNCATED
    assert "before the answer began" in judge(200, answer("", "length")).message


@pytest.mark.parametrize("choices", [None, [], [None], ["x"], {}, "x", [{}], [{"message": None}], [{"message": []}]])
def test_choices_of_any_shape_are_an_empty_answer(choices: Any) -> None:
    verdict = judge(200, answer() | {"choices": choices})

    assert (verdict.kind, verdict.error_class) == (Kind.EMPTY, "empty_output")


@pytest.mark.parametrize("content", [None, "", "  \n", [], [{"type": "text", "text": " "}], 7, {}])
@pytest.mark.parametrize("finish", ["stop", None])
def test_silence_is_its_own_failure(content: Any, finish: str | None) -> None:
    """thedotmack/claude-mem#3569 and others: null, "", blanks."""
    verdict = judge(200, answer(content, finish))

    assert (verdict.kind, verdict.error_class) == (Kind.EMPTY, "empty_output")
    assert verdict.wait_seconds is not None
    assert verdict.wait_seconds <= 10


def test_silence_after_thoughts_names_its_cause() -> None:
    body = answer("")
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 500}

    assert "only thought (500 tokens)" in judge(200, body).message
    thought = answer(None)
    thought["choices"][0]["message"]["reasoning"] = "Hmm."
    assert "only thought" in judge(200, thought).message


def test_what_the_insurance_covers_is_not_billed() -> None:
    silent = answer(None, None)
    silent["usage"]["completion_tokens"] = 0

    assert judge(200, silent).is_billed is False
    assert judge(200, answer("", "stop")).is_billed is None
    assert judge(200, answer("half", "error")).is_billed is False
    assert judge(200, answer()).is_billed is True
    assert judge(200, answer("half", "length")).is_billed is True


@pytest.mark.parametrize(
    ("status", "is_billed"),
    [(code, None) for code in (408, 499, 500, 504, 524)]
    + [(code, False) for code in (400, 401, 402, 429, 502, 503, 529)],
)
def test_a_failure_may_have_been_billed_where_the_model_had_begun(status: int, is_billed: bool | None) -> None:
    assert judge(status, failure(status)).is_billed is is_billed


def test_a_refusal_is_final() -> None:
    body = answer(None)
    body["choices"][0]["message"]["refusal"] = "I'm sorry, I can't help with that."
    verdict = judge(200, body)

    assert (verdict.kind, verdict.error_class) == (Kind.PERMANENT, "refused")
    assert "can't help" in verdict.message


def test_content_in_parts_is_content() -> None:
    assert judge(200, answer([{"type": "text", "text": '{"a"'}, ":1}"])).kind is Kind.OK


def test_the_one_who_answered_is_named() -> None:
    assert judge(200, answer()).provider == "Google"
