"""Metrics that are not the library's own, and those that several parts of one process ask for."""

import pytest
from prometheus_client import REGISTRY

from sidelinja_jobs.metrics import ERROR_KINDS, BulkHistogram, count_child_ends, error_kind

KINDS = {
    ("rate_limited", False): "provider_429",
    ("upstream", False): "provider_5xx",
    ("transport", False): "provider_5xx",
    ("empty_output", False): "provider_5xx",
    ("model_unavailable", True): "provider_4xx",
    ("policy_filtered", True): "provider_4xx",
    ("refused", True): "provider_4xx",
    ("config", True): "provider_4xx",
    ("timeout", False): "timeout",
    ("engine_stalled", False): "timeout",
    ("out_of_memory", False): "memory",
    ("child_died", False): "crash",
    ("no_audio", True): "bad_input",
    ("ValueError", False): "other",
}


def test_failures_are_counted_by_what_they_are() -> None:
    found = {(name, is_permanent): error_kind(name, is_permanent) for name, is_permanent in KINDS}

    assert found == KINDS
    assert set(KINDS.values()) == set(ERROR_KINDS), "a kind that nothing is counted under is always 0"


def test_children_of_two_job_types_are_counted_apart() -> None:
    def ends(job_type: str) -> float | None:
        return REGISTRY.get_sample_value("jobqueue_child_restarts_total", {"job_type": job_type, "reason": "died"})

    first, second = count_child_ends("metrics_test_one"), count_child_ends("metrics_test_two")
    first("died")
    first("died")
    second("died")

    assert (ends("metrics_test_one"), ends("metrics_test_two")) == (2, 1)


def test_many_values_make_the_same_histogram_as_each_by_itself() -> None:
    histogram = BulkHistogram("test_batch_seconds", "A test", ["job_type"])
    histogram.observe(("a",), [0.05, 0.1, 0.4, 20_000, -1])
    histogram.observe(("b",), ())

    (family,) = histogram.collect()
    samples = {
        (sample.name, sample.labels["job_type"], sample.labels.get("le")): sample.value for sample in family.samples
    }

    assert samples["test_batch_seconds_bucket", "a", "0.1"] == 3
    assert samples["test_batch_seconds_bucket", "a", "0.5"] == 4
    assert samples["test_batch_seconds_bucket", "a", "14400.0"] == 4
    assert samples["test_batch_seconds_bucket", "a", "+Inf"] == samples["test_batch_seconds_count", "a", None] == 5
    assert samples["test_batch_seconds_sum", "a", None] == pytest.approx(20_000.55)
    assert samples["test_batch_seconds_count", "b", None] == 0
