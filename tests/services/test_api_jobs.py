"""The JSON API as another program meets it: enqueue, look, operate, over a socket."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest
from psycopg.types.json import Jsonb

from tests.services.admin_site import AdminSite
from tests.services.api_client import SCHEMA, api_client


@pytest.fixture
def api(admin_site: AdminSite) -> Iterator[httpx.Client]:
    with api_client(admin_site) as client:
        yield client


def enqueue(api: httpx.Client, **fields: object) -> httpx.Response:
    return api.post("/jobs", json={"job_type": "test_job", "payload": {}} | fields)


def test_an_enqueued_job_is_what_was_sent(admin_site: AdminSite, api: httpx.Client) -> None:
    parent = str(uuid4())
    body = (
        '{"job_type": "test_job", "payload": {"navn": "æøå 日本", "n": 9223372036854775807, "x": 0.1, "big": 1e400},'
        ' "priority": -32768, "max_attempts": 7, "unique_key": "k", "scheduled_for": "2199-12-31T23:59:00+00:00",'
        f' "parent_id": "{parent}"}}'
    )

    answer = api.post("/jobs", content=body.encode(), headers={"Content-Type": "application/json"})

    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/v1/jobs/{answer.json()['id']}"
    job = admin_site.database.row("select *, payload::text as text from job_queue")
    assert str(job["id"]) == answer.json()["id"]
    assert '"n": 9223372036854775807' in job["text"] and '"x": 0.1,' in job["text"]
    assert '"navn": "æøå 日本"' in job["text"] and "1" + "0" * 400 in job["text"]
    assert (job["priority"], job["max_attempts"], job["unique_key"]) == (-32768, 7, "k")
    assert (job["scheduled_for"].year, str(job["parent_id"])) == (2199, parent)
    assert admin_site.database.value("select actor from job_event") == "token:suite"
