"""Metrics that several parts of one process ask for."""

from prometheus_client import REGISTRY

from sidelinja_jobs.metrics import count_child_ends


def test_children_of_two_job_types_are_counted_apart() -> None:
    def ends(job_type: str) -> float | None:
        return REGISTRY.get_sample_value("jobqueue_child_restarts_total", {"job_type": job_type, "reason": "died"})

    first, second = count_child_ends("metrics_test_one"), count_child_ends("metrics_test_two")
    first("died")
    first("died")
    second("died")

    assert (ends("metrics_test_one"), ends("metrics_test_two")) == (2, 1)
