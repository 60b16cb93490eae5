"""Prometheus metrics of the statistics, beside those of every worker."""

from collections.abc import Mapping

from prometheus_client import Counter, disable_created_metrics

RESULTS = ("counted", "excluded", "late", "bad")

disable_created_metrics()  # type: ignore[no-untyped-call]  # or each counter counts twice as a series
_lines = Counter("stats_lines_total", "Lines read by this process, by what became of them", ["result"])
_by_result = {result: _lines.labels(result) for result in RESULTS}


def count_lines(before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Adds what came between two looks at a run's sums, by RESULTS."""
    for result, counter in _by_result.items():
        counter.inc(after[result] - before[result])
