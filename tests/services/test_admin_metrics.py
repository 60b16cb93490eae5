"""What the admin view counts of its own requests."""

from prometheus_client import REGISTRY

from tests.services.admin_site import AdminSite
from tests.services.api_client import api_client
from tests.waiting import wait_until


def requests(route: str, code: str) -> float:
    return REGISTRY.get_sample_value("jobqueue_http_requests_total", {"route": route, "code": code}) or 0.0


def open_streams() -> float | None:
    return REGISTRY.get_sample_value("jobqueue_sse_clients")


def test_requests_are_counted_by_route_and_status(admin_site: AdminSite) -> None:
    job = "00000000-0000-4000-8000-000000000000"
    asked = [
        (admin_site.operator, "/jobs", "/jobs", "200"),
        (admin_site.operator, f"/jobs/{job}", "/jobs/{id:uuid}", "404"),
        (admin_site.operator, "/static/style.css", "/static", "200"),
        (admin_site.nobody, f"/api/v1/jobs/{job}", "/api/v1/jobs/{id}", "401"),
        (admin_site.nobody, "/api/v1/health", "/api/v1/health", "200"),
        (admin_site.nobody, "/jobs", "none", "303"),
        (admin_site.operator, f"/no/such/page/{job}", "none", "404"),
    ]
    for client, path, route, code in asked:
        before = requests(route, code)
        assert str(client.get(path).status_code) == code
        wait_until(lambda: requests(route, code) == before + 1, what=f"{path} to be counted")  # noqa: B023 - in the turn

    routes = {sample.labels["route"] for metric in REGISTRY.collect() if metric.name == "jobqueue_http_requests"
              for sample in metric.samples}  # fmt: skip
    assert not [route for route in routes if job in route]


def test_open_streams_are_counted_until_they_end(admin_site: AdminSite) -> None:
    with admin_site.operator.stream("GET", "/live") as answer:
        assert answer.status_code == 200
        wait_until(lambda: open_streams() == 1.0)
        with api_client(admin_site, "read") as api, api.stream("GET", "/events/stream"):
            wait_until(lambda: open_streams() == 2.0)
    wait_until(lambda: open_streams() == 0.0)
