"""What the JSON API refuses: who has no token, and every kind of bad input, each with a problem that says why."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from services.admin.api import bodies
from services.admin.api.problems import KINDS
from services.admin.api.routes import OPERATIONS
from services.admin.api.tokens import Failures, new_token
from tests.databases import Database, Server, each_database
from tests.services.admin_site import AdminSite, admin_site_with
from tests.services.api_client import api_client, make_token

EXAMPLE = {"{id}": "8c1d5d0e-5c5e-4f0a-9f0e-0d7f1c9a0001", "{name}": "test_job"}


@pytest.fixture(scope="module")
def site(server: Server) -> Iterator[AdminSite]:
    """One for all tests that leave nothing behind but tokens."""
    for database in each_database(server):
        with admin_site_with(database) as running:
            yield running


def path_of(path: str) -> str:
    for parameter, value in EXAMPLE.items():
        path = path.replace(parameter, value)
    return path


def test_no_operation_answers_without_a_token_but_health(site: AdminSite) -> None:
    """Neither does a session of an operator help: cookies are not looked at."""
    assert {operation.name for operation in OPERATIONS if operation.scope is None} == {"tell_health"}
    for operation in OPERATIONS:
        if operation.scope is None:
            continue
        for client in (site.nobody, site.operator):
            answer = client.request(operation.method, f"/api/v1{path_of(operation.path)}", json={})
            assert (answer.status_code, answer.json()["code"]) == (401, "no_token"), operation.name
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_may_do_what_its_scopes_say_and_nothing_else(site: AdminSite) -> None:
    for scope in ("enqueue", "read", "operate"):
        with api_client(site, scope, name=scope) as client:
            for operation in OPERATIONS:
                if operation.scope and operation.scope != scope:
                    answer = client.request(operation.method, path_of(operation.path), json={})
                    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope"), operation.name
                    assert operation.scope in answer.json()["next_step"]


def test_a_token_that_is_expired_or_revoked_is_refused_at_once(admin_site: AdminSite) -> None:
    with api_client(admin_site, "read") as client:
        assert client.get("/jobs").status_code == 200
        used = admin_site.database.value("select last_used_at is not null from api_token")
        admin_site.database.rows("select revoke_api_token('suite')")
        revoked = client.get("/jobs")
        client.headers["Authorization"] = f"Bearer {make_token(admin_site, name='short')}"
        admin_site.database.rows("update api_token set expires_at = now() - interval '1 s' where name = 'short'")
        expired = client.get("/jobs")

    assert used
    assert [(answer.status_code, answer.json()["code"]) for answer in (revoked, expired)] == [(401, "wrong_token")] * 2


def test_wrong_tokens_are_slowed_down_and_good_ones_go_on(admin_site: AdminSite) -> None:
    with api_client(admin_site, "read") as client:
        client.get("/jobs")
        headers = [f"Bearer {new_token()}", "Bearer x", "Bearer y z", "Bearer jobbko_æ", "Bearer jobbko_"] * 4
        codes = []
        for header in headers:
            codes.append(client.get("/jobs", headers={"Authorization": header.encode()}).json()["code"])
        blocked = client.get("/jobs", headers={"Authorization": f"Bearer {make_token(admin_site, name='fresh')}"})

        assert set(codes) <= {"wrong_token"}
        assert (blocked.status_code, blocked.json()["code"]) == (429, "too_many_failures")
        assert 0 < int(blocked.headers["retry-after"]) <= 60
        assert client.get("/jobs").status_code == 200


def test_failures_are_forgotten_after_a_while_and_do_not_grow() -> None:
    now = 0.0
    failures = Failures(most=2, window_seconds=60, most_addresses=3, clock=lambda: now)
    failures.add("a")
    assert failures.wait_seconds("a") == 0
    now = 10.0
    failures.add("a")

    assert failures.wait_seconds("a") == 50
    now = 61.0
    assert failures.wait_seconds("a") == 0
    for address in "bcd":
        failures.add(address)
    assert len(failures._times) == 3


BIG = "9" * 5000
BAD_BODIES: list[tuple[str, str, str]] = [
    # what is sent to POST /jobs, the code, the field
    ("", "invalid_json", ""),
    ("{", "invalid_json", ""),
    ("[]", "invalid_body", "the body"),
    ("null", "invalid_body", "the body"),
    ('{"job_type": "test_job"}', "invalid_body", "payload"),
    ('{"job_type": "test_job", "payload": {}, "prioritet": 1}', "invalid_body", "prioritet"),
    ('{"job_type": "", "payload": {}}', "invalid_body", "job_type"),
    ('{"job_type": "a\\u0000b", "payload": {}}', "invalid_body", "job_type"),
    ('{"job_type": "test_job", "payload": {}, "unique_key": "\\ud800 "}', "invalid_json", ""),
    ('{"job_type": "test_job", "payload": {}, "unique_key": "\\udc00 "}', "invalid_json", ""),
    ('{"job_type": "test_job", "payload": []}', "invalid_payload", "payload"),
    ('{"job_type": "test_job", "payload": null}', "invalid_payload", "payload"),
    ('{"job_type": "test_job", "payload": {"a": "\\u0000"}}', "invalid_payload", "payload.a"),
    ('{"job_type": "test_job", "payload": {"a\\u0000": 1}}', "invalid_payload", "payload"),
    ('{"job_type": "test_job", "payload": {"a": NaN}}', "invalid_json", ""),
    ('{"job_type": "test_job", "payload": {"a": Infinity}}', "invalid_json", ""),
    ('{"job_type": "test_job", "payload": {"a": 1, "a": 2}}', "invalid_json", ""),
    ('{"job_type": "test_job", "payload": {"a": 1e999999999}}', "refused", ""),
    ('{"job_type": "test_job", "payload": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}", "invalid_json", ""),
    ('{"job_type": "test_job", "payload": {"a": ' + '{"a":' * 5_000 + "1" + "}" * 5_000 + "}}", "invalid_json", ""),
    ('{"job_type": "test_job", "payload": {"path": "' + "x" * 1025 + '"}}', "invalid_payload", "payload.path"),
    ('{"job_type": "test_job", "payload": {"a": "' + "QUJD" * 300 + '"}}', "invalid_payload", "payload.a"),
    ('{"job_type": "test_job", "payload": {"a": "' + "x " * 600_000 + '"}}', "refused", ""),
    ('{"job_type": "test_job", "payload": {}, "priority": 32768}', "invalid_body", "priority"),
    ('{"job_type": "test_job", "payload": {}, "priority": ' + BIG + "}", "invalid_body", "priority"),
    ('{"job_type": "test_job", "payload": {}, "priority": 1.5}', "invalid_body", "priority"),
    ('{"job_type": "test_job", "payload": {}, "priority": true}', "invalid_body", "priority"),
    ('{"job_type": "test_job", "payload": {}, "max_attempts": 0}', "invalid_body", "max_attempts"),
    ('{"job_type": "test_job", "payload": {}, "unique_key": ""}', "invalid_body", "unique_key"),
    ('{"job_type": "test_job", "payload": {}, "unique_key": "' + "k" * 501 + '"}', "invalid_body", "unique_key"),
    ('{"job_type": "test_job", "payload": {}, "parent_id": "1"}', "invalid_body", "parent_id"),
    ('{"job_type": "test_job", "payload": {}, "scheduled_for": "infinity"}', "invalid_body", "scheduled_for"),
    ('{"job_type": "test_job", "payload": {}, "scheduled_for": "2026-12-24T18:00"}', "invalid_body", "scheduled_for"),
    ('{"job_type": "test_job", "payload": {}, "scheduled_for": "1999-12-31T23:59:59Z"}', "invalid_body",
     "scheduled_for"),
    ('{"job_type": "test_job", "payload": {}, "scheduled_for": "9999-12-31T23:59:59-14:00"}', "invalid_body",
     "scheduled_for"),
    ('{"job_type": "test_job", "payload": {}, "scheduled_for": "2200-01-01T00:59:59+01:00"}', "invalid_body",
     "scheduled_for"),
]  # fmt: skip


def test_bad_bodies_are_refused_with_their_field(site: AdminSite) -> None:
    with api_client(site, name="bad bodies") as api:
        for body, code, field in BAD_BODIES:
            answer = api.post("/jobs", content=body.encode(), headers={"Content-Type": "application/json"})
            problem = answer.json()
            assert problem["code"] == code, f"{body[:100]}: {answer.text[:500]}"
            assert answer.status_code == KINDS[code].status
            assert answer.headers["content-type"] == "application/problem+json"
            assert problem["detail"] and problem["next_step"], body[:100]  # noqa: PT018
            assert [error["field"] for error in problem.get("errors", [])][:1] == ([field] if field else []), problem
            assert len(answer.content) < 5000

        assert site.database.value("select count(*) from job_queue") == 0


OTHER_BODIES: list[tuple[bytes, dict[str, str], str]] = [
    (b"{}", {"Content-Type": "text/plain"}, "wrong_content_type"),
    (b"{}", {}, "wrong_content_type"),
    (b"{}", {"Content-Type": "application/json; charset=utf-16"}, "wrong_content_type"),
    (b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, "wrong_content_type"),
    (b"\x1f\x8b", {"Content-Type": "application/json", "Content-Encoding": "gzip"}, "wrong_content_type"),
    (b'{"reason": "\xff\xfe"}', {"Content-Type": "application/json"}, "invalid_json"),
    (b'{"reason": "' + b"x" * 70_000 + b'"}', {"Content-Type": "application/json"}, "body_too_large"),
]


def test_bodies_of_other_kinds_are_refused(site: AdminSite) -> None:
    with api_client(site, name="other bodies") as api:
        for content, headers, code in OTHER_BODIES:
            answer = api.post(f"/jobs/{EXAMPLE['{id}']}/cancel", content=content, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (KINDS[code].status, code), content[:100]


@pytest.mark.parametrize("framing", ["Content-Length: 1000000000", "Transfer-Encoding: chunked"])
def test_a_body_over_the_limit_is_cut_off_early(site: AdminSite, framing: str) -> None:
    """The answer comes long before the end."""
    token = make_token(site, name=framing[:7])
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        connection.sendall(head.encode())
        for _ in range(17):
            connection.sendall(chunk)
        answer = b""
        while b"}" not in answer:
            answer += connection.recv(100_000)

    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "body_too_large"


def test_a_body_that_does_not_come_is_not_waited_for(site: AdminSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SECONDS", 0.2)
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {make_token(site, name='slow')}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(100_000)

    assert answer.startswith(b"HTTP/1.1 408")


def test_paths_and_methods_that_there_are_none_of_get_a_problem_too(site: AdminSite) -> None:
    def code(method: str, path: str) -> tuple[int, Any]:
        answer = httpx.request(method, f"{site.url}/api/v1{path}")
        return answer.status_code, answer.json().get("code")

    assert code("GET", "/nothing") == (404, "no_such_path")
    assert code("GET", "/") == (404, "no_such_path")
    assert code("GET", "/jobs/") == (404, "no_such_path")
    assert code("GET", "/%0A") == (404, "no_such_path")
    assert code("GET", "/jobs/x%0A/result") == (401, "no_token")
    assert code("DELETE", "/jobs") == (405, "method_not_allowed")
    allowed = httpx.delete(f"{site.url}/api/v1/jobs").headers["allow"]
    assert {"GET", "POST"} <= {method.strip() for method in allowed.split(",")}


def test_a_fault_of_ours_tells_nothing_of_what_is_inside(admin_site: AdminSite) -> None:
    with api_client(admin_site) as api:
        admin_site.database.rows("revoke select on job_queue from jobbko_operator")
        fault = api.get("/jobs")

    assert (fault.status_code, fault.json()["code"]) == (500, "internal_error")
    assert "job_queue" not in fault.text


def test_a_database_that_is_away_is_told(database: Database) -> None:
    with admin_site_with(database, DB_TIMEOUT_SECONDS="1") as site, api_client(site) as api:
        assert api.get("/health").status_code == 200
        database.rows(f"revoke connect on database {database.name} from jobbko_admin, jobbko_operator")
        database.rows("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'jobbko_admin'")
        away = api.get("/jobs")
        health = api.get("/health")

    assert (away.status_code, away.json()["code"], away.headers["retry-after"]) == (503, "database_unavailable", "5")
    assert (health.status_code, health.json()) == (503, {"status": "unavailable"})
