"""What Prometheus is told: one name for all replicas of all workers."""

from typing import Any

import yaml

from sidelinja_jobs.settings import WorkerSettings
from tests.databases import ROOT
from tests.deploy.stack import SERVICES

CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "services" / "prometheus" / "prometheus.yml").read_text())


def test_replicas_are_found_by_the_name_that_all_workers_share() -> None:
    workers = next(entry for entry in CONFIG["scrape_configs"] if entry["job_name"] == "workers")
    (discovery,) = workers["dns_sd_configs"]

    assert discovery["names"] == ["workers"]
    assert discovery["type"] == "A"
    assert discovery["port"] == WorkerSettings.metrics_port


def test_prometheus_reaches_the_workers_and_is_reached_from_this_machine_alone() -> None:
    service = SERVICES["prometheus"]
    assert set(service["networks"]) == {"backend", "frontend"}
    assert service["ports"] == ["127.0.0.1:${PROMETHEUS_PORT:-9090}:9090"]
    assert service["user"] == "65534:65534"


def test_a_scrape_ends_before_the_next_one_begins() -> None:
    assert int(CONFIG["global"]["scrape_timeout"][:-1]) < int(CONFIG["global"]["scrape_interval"][:-1])
