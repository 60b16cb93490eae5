"""Prometheus metrics of the calls, beside those of every worker. Made once per process."""

from decimal import Decimal

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from openrouter_client.usage import Usage

# What became of a call, or why none was needed.
OUTCOMES = (
    "ok", "reused", "cache_hit", "retry", "come_back", "pause", "permanent", "too_long", "truncated", "affords_less",
    "other_format", "empty", "invalid",
)  # fmt: skip
KINDS = ("prompt", "cached", "completion", "reasoning")
SECONDS_BUCKETS = (0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280)


class ModelMetrics:
    """`model` is the configured one, so that its values are few; who really answered stands in the ledger."""

    def __init__(self, model: str, day_budget_usd: Decimal) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # or each counter counts twice as a series
        requests = Counter("openrouter_requests_total", "Questions to the model, by outcome", ["model", "outcome"])
        tokens = Counter("openrouter_tokens_total", "Tokens that calls used", ["model", "kind"])
        self.requests = {outcome: requests.labels(model, outcome) for outcome in OUTCOMES}
        self.tokens = {kind: tokens.labels(model, kind) for kind in KINDS}
        self.cost_usd = Counter("openrouter_cost_usd_total", "Cost of calls, as far as known", ["model"]).labels(model)
        self.unknown_cost = Counter(
            "openrouter_unknown_cost_calls_total", "Calls that may have been billed, nobody knows how much", ["model"]
        ).labels(model)
        self.duplicates = Counter(
            "openrouter_possible_duplicates_total", "Questions sent again that may have been paid before", ["model"]
        ).labels(model)
        self.seconds = Histogram(
            "openrouter_request_seconds", "Time from sending to the whole answer", ["model"], buckets=SECONDS_BUCKETS
        ).labels(model)
        self.unanswered = Gauge("openrouter_unanswered_in_a_row", "Questions since the last one that was answered")
        self.day_budget_usd = Gauge("openrouter_day_budget_usd", "What all job types may spend in a day (UTC)")
        self.day_budget_usd.set(float(day_budget_usd))
        self.key_usable = Gauge("openrouter_key_usable", "1 = the key was accepted when last looked at, 0 = it was not")

    def record_usage(self, usage: Usage) -> None:
        """Counts a call's tokens and cost."""
        self.tokens["prompt"].inc(usage.prompt_tokens)
        self.tokens["cached"].inc(usage.cached_tokens)
        self.tokens["completion"].inc(usage.completion_tokens)
        self.tokens["reasoning"].inc(usage.reasoning_tokens)
        self.record_cost(usage.cost_usd)

    def record_cost(self, cost_usd: Decimal | None) -> None:
        """Counts what a call cost; None = nobody knows."""
        if cost_usd is None:
            self.unknown_cost.inc()
        else:
            self.cost_usd.inc(float(cost_usd))
