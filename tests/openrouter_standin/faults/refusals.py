"""Refusals: a status and a body in place of an answer."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any

from tests.openrouter_standin.failures import failure
from tests.openrouter_standin.fault import Fault
from tests.openrouter_standin.wire import Wire

EDGE_PAGE = (
    b"<!DOCTYPE html><html><head><title>openrouter.ai | 524: A timeout occurred</title></head>"
    b"<body><h1>A timeout occurred</h1><p>Error code 524</p></body></html>"
)


def refused(
    status: int,
    message: str = "Something is wrong",
    error_type: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Fault:
    """Any status with the ordinary body; `more` goes into its metadata, `availability` beside it."""
    return Fault(str(status), status, failure(status, message, error_type, **more), headers or {})


def upstream(status: int, raw: str, *, provider: str = "Google", error_type: str | None = None) -> Fault:
    """A provider's own error, hidden behind a sentence that says nothing."""
    told = failure(status, "Provider returned error", error_type, raw=raw, provider_name=provider)
    return Fault(f"upstream {status}", status, told, hits_first_model=True)


def rate_limited(*, retry_after: str | None = None, headers: Mapping[str, str] | None = None, **more: Any) -> Fault:
    hint = {"Retry-After": retry_after} if retry_after is not None else {}
    body = failure(429, "Rate limit exceeded", "rate_limit_exceeded", **more)
    return Fault("rate limited", 429, body, {**hint, **(headers or {})}, hits_first_model=True)


def rate_limited_until_date(seconds: float) -> Fault:
    return rate_limited(retry_after=formatdate(time.time() + seconds, usegmt=True))


def free_models_per_day(seconds: float) -> Fault:
    """The reset stands in the metadata alone, in epoch milliseconds."""
    reset = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0"}
    nested = {**reset, "X-RateLimit-Reset": str(int((time.time() + seconds) * 1000))}
    body = failure(429, "Rate limit exceeded: free-models-per-day", "rate_limit_exceeded", headers=nested)
    return Fault("free models per day", 429, body)


def reset_header(seconds: float) -> Fault:
    return rate_limited(headers={"X-RateLimit-Reset": str(int((time.time() + seconds) * 1000))})


def retry_after_ms(milliseconds: int) -> Fault:
    return rate_limited(headers={"retry-after-ms": str(milliseconds)})


def overloaded(*, retry_after: float | None = None, retryable: bool | None = None) -> Fault:
    """503 with the newer member that says whether, and when, to try again; here without a code."""
    told = {"code": "temporarily_unavailable", "retryable": retryable, "retry_after": retry_after}
    error = {"message": "No provider is able to take this", "error_type": "provider_overloaded", "http_status": 503}
    return Fault("overloaded", 503, {"error": {**error, "availability": told}, "user_id": "user_2standin"})


def in_flight_budget(retry_after: str = "5") -> Fault:
    """The one 402 that is worth waiting for."""
    body = failure(
        402,
        "This request would exceed your available credits given your current in-flight requests.",
        "payment_required",
        reason="in_flight_budget_exhausted",
        limit_source="openrouter_in_flight_budget",
    )
    return Fault("in-flight budget", 402, body, {"Retry-After": retry_after})


def no_credits() -> Fault:
    body = failure(
        402, "Insufficient credits. Add more and try again", "payment_required", limit_source="openrouter_credits"
    )
    return Fault("no credits", 402, body)


def affords(requested: int, affordable: int) -> Fault:
    """402 that says how many tokens would be affordable."""
    message = (
        "This request requires more credits, or fewer max_tokens. "
        f"You requested up to {requested} tokens, but can only afford {affordable}."
    )
    return Fault("affords less", 402, failure(402, message, "payment_required"))


def moderated(*reasons: str) -> Fault:
    told: dict[str, Any] = {
        "reasons": list(reasons),
        "flagged_input": "…",
        "provider_name": "OpenAI",
        "model_slug": "openai/gpt-small",
    }
    return Fault("moderated", 403, failure(403, "Your chosen model requires moderation", **told))


def edge_page(status: int = 524) -> Fault:
    """A page of HTML from the network before the service."""
    return Fault(f"HTML page {status}", status, EDGE_PAGE)


def redirected(location: str = "http://127.0.0.1:9/elsewhere") -> Fault:
    return Fault("redirect", 302, b"", {"Location": location})


def gzipped() -> Fault:
    return Fault("gzip", 429, failure(429, "Rate limit exceeded"), {"Retry-After": "1"}, wire=Wire(is_gzip=True))
