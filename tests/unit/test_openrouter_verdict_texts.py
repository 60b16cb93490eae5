"""Verdicts that hang on what an error says: credit, filters, schemas, pages of an edge, and cases from the wild."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.verdicts import Kind
from tests.unit.openrouter_shapes import HOUR, NOW, answer, failure, judge, unavailable

# Credit.


def test_a_smaller_budget_is_offered_where_the_credit_allows_one() -> None:
    """can1357/oh-my-pi#9569: without a budget the model's full output is reserved."""
    text = "Fewer max_tokens, or more credits. You requested up to 65536 tokens, but can only afford 1,234."
    verdict = judge(402, failure(402, message=text))

    assert (verdict.kind, verdict.error_class, verdict.affordable_tokens) == (Kind.AFFORDS_LESS, "credits", 1234)
    assert verdict.wait_seconds == HOUR
    assert judge(402, failure(402, message="can only afford 0 tokens")).kind is Kind.PAUSE
    assert judge(402, failure(402, message=f"can only afford {'9' * 400}")).kind is Kind.AFFORDS_LESS


def test_spent_credit_rests_an_hour_or_as_told() -> None:
    assert judge(402, failure(402)).wait_seconds == HOUR
    assert judge(402, failure(402), {"Retry-After": "7200"}).wait_seconds == 7200


def test_a_budget_in_flight_is_waited_for() -> None:
    body = failure(402, "payment_required", limit_source="openrouter_in_flight_budget")

    assert judge(402, body, {"Retry-After": "5"}).kind is Kind.COME_BACK
    assert judge(402, body, {"Retry-After": "5"}).wait_seconds == 5
    assert judge(402, body).wait_seconds == 60


def test_a_key_whose_own_limit_is_spent_is_a_matter_of_credit() -> None:
    verdict = judge(403, failure(403, message="Key limit exceeded (total limit). Manage it using the settings page"))

    assert (verdict.kind, verdict.error_class, verdict.wait_seconds) == (Kind.PAUSE, "credits", HOUR)
    assert judge(429, {"error": {"type": "insufficient_quota", "message": "x"}}).error_class == "credits"


# Texts that say more than type and code.


def test_what_the_provider_said_itself_is_shown() -> None:
    """open-webui/computer#293: "Provider returned error" hid the reason."""
    body = failure(502, message="Provider returned error", raw='{"detail":"GPU on fire"}', provider_name="DeepInfra")
    verdict = judge(502, body)

    assert "GPU on fire" in verdict.message
    assert verdict.provider == "DeepInfra"
    assert len(judge(502, failure(502, message="x" * 10_000, raw="y" * 10_000)).message) < 1200


@pytest.mark.parametrize(
    "raw",
    [
        "response_format.json_schema is not supported by this model",
        "Invalid schema for response_format 'metadata'",
        '{"error":{"message":"JSON mode is not enabled for this model"}}',
        "Unsupported structured output",
    ],
)
def test_a_provider_that_knows_no_schema_is_asked_otherwise(raw: str) -> None:
    for error_type in (None, "invalid_request"):
        body = failure(400, error_type, "Provider returned error", raw=raw, provider_name="X")
        assert judge(400, body).kind is Kind.OTHER_FORMAT


def test_a_fault_of_our_own_request_is_not_asked_otherwise() -> None:
    body = failure(400, "invalid_request", "provider: Unrecognized key 'requireParameters' in schema")

    assert judge(400, body).kind is Kind.PERMANENT


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "the request exceeds",
                    "n_ctx": 4096,
                }
            },
        ),
        (
            400,
            {
                "error": {
                    "message": "This model's maximum context length is 8192 tokens. You requested 9000.",
                    "code": 400,
                }
            },
        ),
        (
            400,
            {
                "error": {
                    "message": "Prompt is too long",
                    "type": "invalid_request_error",
                    "code": "context_length_exceeded",
                }
            },
        ),
        (500, {"error": "input exceeds the context window"}),
        (400, {"object": "error", "message": "too many tokens in the prompt", "code": 400}),
        (
            400,
            failure(400, None, "Provider returned error", raw="prompt too long; exceeded maximum context length by 7"),
        ),
    ],
)
def test_every_servers_way_to_say_too_long_is_understood(status: int, body: Any) -> None:
    assert judge(status, body).kind is Kind.TOO_LONG


def test_a_moderated_text_is_refused_with_the_reasons() -> None:
    verdict = judge(
        403, failure(403, None, "Input flagged", reasons=["violence"], flagged_input="…", provider_name="P")
    )

    assert (verdict.kind, verdict.error_class) == (Kind.PERMANENT, "refused")
    assert "violence" in verdict.message
    assert judge(403, failure(403, None, "Blocked", patterns=["ignore previous"])).error_class == "refused"


def test_filters_that_exclude_every_provider_are_named_with_their_settings() -> None:
    """ShamanicArts/Flow.Launcher.Plugin.AI-Assistant#2: a 404 that was a data policy."""
    body = unavailable("constraint_filtered", False, excluded_by=["data_collection", "zdr"], fallback_models=["c/d"])
    verdict = judge(404, body)

    assert (verdict.kind, verdict.error_class) == (Kind.PERMANENT, "policy_filtered")
    assert verdict.advice is not None
    for name in ("OPENROUTER_DATA_COLLECTION", "OPENROUTER_ZDR", "c/d"):
        assert name in verdict.advice
    old = judge(404, failure(404, message="No endpoints found matching your data policy."))
    assert (old.kind, old.error_class) == (Kind.PERMANENT, "policy_filtered")


def test_an_unknown_address_is_not_an_unknown_model() -> None:
    page = judge(404, "<html><body>Not Found</body></html>")
    assert (page.error_class, "OPENROUTER_BASE_URL" in str(page.advice)) == ("config", True)
    assert judge(404, {"detail": "Not Found"}).error_class == "config"
    assert "does not know this address" in str(judge(404).advice)
    assert judge(404, {"error": {"message": "model 'llama9' not found, try pulling it first"}}).error_class == (
        "model_unavailable"
    )


def test_a_page_of_an_edge_is_judged_by_its_status() -> None:
    page = "<html><head><title>524</title></head><body><h1>A timeout occurred</h1></body></html>"

    assert judge(524, page).error_class == "timeout"
    assert "A timeout occurred" in judge(524, page).message
    assert "<" not in judge(524, page).message
    assert judge(403, page).kind is Kind.RETRY
    assert judge(502, b"\xff\xfe bad gateway").kind is Kind.RETRY
    assert judge(502, None).kind is Kind.RETRY


@pytest.mark.parametrize("body", [None, "", "<html>Login</html>", "ok", [], 7])
def test_a_200_that_is_no_json_is_a_failure(body: Any) -> None:
    verdict = judge(200, body)

    assert (verdict.kind, verdict.error_class) == (Kind.RETRY, "upstream")
    assert verdict.advice is not None


def test_a_redirect_is_a_matter_of_configuration() -> None:
    verdict = judge(308, None, {"Location": "https://elsewhere/api"})

    assert (verdict.kind, verdict.error_class) == (Kind.PERMANENT, "config")
    assert "https://elsewhere/api" in verdict.message


# Real cases.


def test_nulls_beside_a_429_are_a_passing_failure_with_its_wait() -> None:
    """UKGovernmentBEIS/inspect_ai#1534."""
    body = dict.fromkeys(("id", "choices", "created", "model", "object", "usage")) | failure(
        429, message="Rate limited"
    )
    verdict = judge(200, body, {"Retry-After": "21"})

    assert (verdict.kind, verdict.wait_seconds) == (Kind.COME_BACK, 21)


def test_the_days_free_calls_are_waited_for_until_their_reset() -> None:
    """Aider-AI/aider#3550: the reset stands in metadata.headers alone, in milliseconds."""
    reset = NOW + timedelta(hours=5)
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Reset": str(int(reset.timestamp() * 1000))}
    text = "Rate limit exceeded: free-models-per-day"
    verdict = judge(429, failure(429, message=text, headers=headers))

    assert (verdict.kind, verdict.wait_seconds) == (Kind.COME_BACK, pytest.approx(5 * HOUR))
    assert judge(429, failure(429, message=text)).wait_seconds == 12 * HOUR


def test_the_message_of_the_server_is_kept() -> None:
    """OpenRouterTeam/python-sdk#44: four validation errors in place of the one message."""
    assert "No auth credentials found" in judge(200, failure(401, message="No auth credentials found")).message


def test_a_broken_off_answer_with_empty_usage_is_never_taken() -> None:
    """maximhq/bifrost#5425."""
    body = answer('{"title": "Half a', "error") | {"usage": {"prompt_tokens": None, "completion_tokens": None}}

    assert judge(200, body).kind is Kind.RETRY


MEMBERS = [
    "error",
    "choices",
    "message",
    "content",
    "code",
    "metadata",
    "availability",
    "finish_reason",
    "retryable",
    "usage",
    "headers",
    "retry_after",
    "reasons",
    "raw",
    "previous_errors",
    "excluded_by",
    "type",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=12,
)


@given(st.integers(100, 599), JSON)
@settings(deadline=None)
def test_any_json_is_judged(status: int, body: Any) -> None:
    verdict = judge(status, body)

    assert verdict.kind is Kind.OK or (verdict.error_class and verdict.message)
    assert len(verdict.message) < 3000
    assert verdict.wait_seconds is None or 0 < verdict.wait_seconds <= 86_400
