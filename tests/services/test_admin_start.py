"""The process of the admin view: when it refuses to start, how it ends, and what it weighs."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

import services.admin.__main__ as admin
from demo.embedded_postgres import free_port
from services.admin.settings import read_settings
from sidelinja_jobs.errors import SettingsError
from tests.databases import ROOT, Database
from tests.waiting import wait_until

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what a container listens on
# 76 MiB when measured here, with packages that the image has not; a bound against a careless import.
IDLE_BYTES = 90 * 1024 * 1024


class Process:
    """`python -m services.admin`, with its output in a file."""

    def __init__(self, database: Database, folder: Path, **environ: str) -> None:
        self.health, self.log = folder / "healthy", folder / "log"
        settings = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}",
            "DATABASE_URL": database.dsn("admin"),
            "ADMIN_PORT": "0",
            "ADMIN_HOSTS": "127.0.0.1",
            "HEALTH_FILE": str(self.health),
            "LOG_FORMAT": "json",
            "METRICS_PORT": "0",
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.admin"], env=settings | environ, cwd=ROOT, stdout=log, stderr=log
            )

    def wait_until_up(self) -> str:
        """Its URL."""

        def port() -> int:
            assert self.process.poll() is None, self.log.read_text()
            ports = [entry.laddr.port for entry in psutil.Process(self.process.pid).net_connections()
                     if entry.status == "LISTEN"]  # fmt: skip
            return ports[0] if ports and self.health.exists() else 0

        return f"http://127.0.0.1:{wait_until(port, 30, what='the admin view to listen')}"

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@pytest.fixture
def started(database: Database, tmp_path: Path) -> Iterator[list[Process]]:
    processes: list[Process] = []
    yield processes
    for process in processes:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()


def test_it_tells_the_queues_state_at_the_port_of_metrics(
    database: Database, tmp_path: Path, started: list[Process]
) -> None:
    port = free_port()
    process = Process(database, tmp_path, METRICS_PORT=str(port), METRICS_HOST="127.0.0.1")
    started.append(process)
    wait_until(process.health.exists, 30)
    database.enqueue()

    assert httpx.get(f"http://127.0.0.1:{port}/metrics").text.count('jobqueue_jobs{job_type="test_job",state=') == 4


def test_while_it_waits_for_its_database_it_is_seen_to_wait(
    database: Database, tmp_path: Path, started: list[Process]
) -> None:
    port = free_port()
    nowhere = f"postgresql://jobbko_admin@127.0.0.1:{free_port()}/jobbko"
    started.append(Process(database, tmp_path, METRICS_PORT=str(port), METRICS_HOST="127.0.0.1", DATABASE_URL=nowhere))

    def metrics() -> str:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{port}/metrics").text
        return ""

    wait_until(lambda: "jobqueue_collect_errors_total 1.0" in metrics(), 20)
    assert started[0].process.poll() is None


def test_it_does_not_start_open_to_the_network(database: Database, tmp_path: Path, started: list[Process]) -> None:
    """The complaint behind it: dashboards that let anybody in until someone reads the manual."""
    process = Process(database, tmp_path, ADMIN_HOST=EVERYWHERE)
    started.append(process)

    assert process.process.wait(30) == 78
    told = process.log.read_text()
    assert "anybody could get in" in told
    assert "Next: set ADMIN_PASSWORD" in told


def test_it_serves_touches_its_health_file_and_ends_well_when_told_to(
    database: Database, tmp_path: Path, started: list[Process]
) -> None:
    (tmp_path / "password").write_text("correct horse\n")
    process = Process(database, tmp_path, ADMIN_HOST=EVERYWHERE, ADMIN_PASSWORD_FILE=str(tmp_path / "password"))
    started.append(process)
    url = process.wait_until_up()
    with httpx.Client(base_url=url, headers={"Sec-Fetch-Site": "same-origin"}) as client:
        assert client.get("/").status_code == 303
        entered = client.post("/login", data={"name": "admin", "password": "correct horse"})
        assert entered.status_code == 303
        assert client.get("/").status_code == 200
    weight = psutil.Process(process.process.pid).memory_info().rss
    print(f"resident after a login and a page: {weight / 2**20:.0f} MiB")

    assert process.end() == 0
    assert weight < IDLE_BYTES
    assert not process.health.exists()
    assert "correct horse" not in process.log.read_text()
    assert re.search(r'"event": "admin view stopped"', process.log.read_text())


def test_the_account_admin_follows_the_password_of_the_settings(database: Database) -> None:
    def ensure(password: str) -> bool:
        settings = read_settings(
            {"DATABASE_URL": database.dsn("admin"), "ADMIN_HOST": EVERYWHERE, "ADMIN_PASSWORD": password}
        )

        async def look() -> bool:
            view = admin.Database(settings)
            async with view.opened():
                return await admin.has_credentials(settings, view)

        return asyncio.run(look())

    def stored() -> tuple[str, str, bool]:
        return tuple(database.row("select role, password_hash, disabled from admin_account").values())  # type: ignore[return-value]

    assert ensure("first")
    role, first, _ = stored()
    ensure("first")
    assert stored()[1] == first, "an unchanged one is not written, which would end sessions"
    database.rows("update admin_account set role = 'viewer'")
    ensure("second")
    changed = stored()
    assert (role, changed[0]) == ("operator", "viewer")
    assert admin.verifies("second", changed[1])
    assert not admin.verifies("first", changed[1])
    database.rows("update admin_account set disabled = true")
    with pytest.raises(SettingsError, match="anybody could get in"):
        ensure("third")
    assert stored() == ("viewer", changed[1], True), "what a person disabled stays so"


def test_a_database_that_stays_away_is_told_with_the_code_of_the_workers(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(admin, "START_SECONDS", 0.0)
    monkeypatch.setenv("METRICS_PORT", "0")
    monkeypatch.setenv("DATABASE_URL", "postgresql://jobbko_admin@127.0.0.1:1/jobbko")

    assert admin.main() == 69
    assert "database unreachable" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "DATABASE_URL is not set"),
        ({"ADMIN_HOSTS": "https://x.no"}, "ADMIN_HOSTS holds 'https://x.no', expected names without scheme and port"),
        ({"ADMIN_HOSTS": ","}, "ADMIN_HOSTS is empty"),
        ({"ADMIN_ROOT_PATH": "jobs/"}, "ADMIN_ROOT_PATH is 'jobs/', expected a path like /jobbko"),
        ({"ADMIN_TIME_ZONE": "Oslo"}, "ADMIN_TIME_ZONE is 'Oslo', expected a zone like Europe/Oslo"),
        ({"ADMIN_FRAME_ANCESTORS": "*"}, "ADMIN_FRAME_ANCESTORS holds '*'"),
        ({"ADMIN_FRAME_ANCESTORS": "'self'; script-src *"}, "ADMIN_FRAME_ANCESTORS holds"),
        ({"ADMIN_PROXY_ADDRESSES": "proxy"}, "ADMIN_PROXY_ADDRESSES: 'proxy'"),
        ({"ADMIN_PROXY_HEADER": "Remote-User"}, "ADMIN_PROXY_HEADER is set and ADMIN_PROXY_ADDRESSES is not"),
        ({"ADMIN_PROXY_HEADER": "Remote User", "ADMIN_PROXY_ADDRESSES": "::1"}, "expected the name of a header"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_allowed(environ: dict[str, str], told: str) -> None:
    base = {} if not environ else {"DATABASE_URL": "postgresql://x@127.0.0.1/y"}

    with pytest.raises(SettingsError, match=re.escape(told)):
        read_settings(base | environ)
