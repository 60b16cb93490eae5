"""`jobs watch`: live lines on a terminal, lines in a pipe, the end of the jobs, Ctrl-C, a database that goes away."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from demo.embedded_postgres import EmbeddedPostgres
from sidelinja_jobs.cli import watching
from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import ROOT, Database
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until

COMMAND = [sys.executable, str(ROOT / "shared" / "jobs")]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between looks do not grow; those of processes do."""
    monkeypatch.setattr(watching, "_LONGEST_PAUSE_SECONDS", watching._FIRST_PAUSE_SECONDS)


@pytest.fixture
def meanwhile(database: Database) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Does something in a thread; when that fails, the jobs end, so that the watch does not wait for ever."""
    threads: list[threading.Thread] = []
    failures: list[Exception] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            failures.append(error)
            database.connect().execute("update job_queue set status = 'error', error_msg = 'the test failed'")

    def start(work: Callable[[], object]) -> None:
        threads.append(threading.Thread(target=guarded, args=[work]))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(20)
    assert failures == []


def run(database: Database, job_id: UUID) -> None:
    """A worker's whole run, as it shows in the table; each step waits until the watch has looked."""
    conn = database.connect()
    for change in (
        "status = 'running', started_at = clock_timestamp()",
        "progress = 0.2, progress_note = 'del æ'",
        "progress = 0.5",
        "progress = 0.9",
        "status = 'completed', completed_at = clock_timestamp()",
    ):
        conn.execute(f"update job_queue set {change} where id = %s", [job_id])
        if "completed" not in change:
            wait_until_looked_at(database)


def wait_until_looked_at(database: Database) -> None:
    now = database.connect().execute("select clock_timestamp()").fetchone()[0]
    asked = database.connect()
    wait_until(
        lambda: asked.execute(
            "select from pg_stat_activity where application_name = 'jobs' and datname = current_database()"
            "   and query ~ 'cancel_requested_at|explain_job' and query_start > %s",
            [now],
        ).fetchone() is not None,
        what="the watch to look again",
    )  # fmt: skip


def environ(database: Database, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", "TERM": "xterm",
        "DATABASE_URL": database.dsn("operator"), **more,
    }  # fmt: skip


def test_watch_ends_with_the_jobs(database: Database, jobs: Jobs, meanwhile: Callable[..., None]) -> None:
    first, second = database.enqueue(), database.enqueue()
    meanwhile(lambda: (run(database, first), run(database, second)))

    ended = jobs("watch", str(first), str(second)[:10])

    assert ended.code == 0
    assert sum("completed 1/3" in line for line in ended.lines) == 2
    assert "\x1b" not in ended.out
    assert "50%" in ended.out


def test_error_is_code_1(database: Database, jobs: Jobs) -> None:
    failed = database.enqueue(status="error", error_class="OSError", error_msg="borte", attempts=3)
    done = database.enqueue(status="completed")

    ended = jobs("watch", str(failed), str(done))

    assert ended.code == ExitCode.JOB_ERROR
    assert ended.lines[0].endswith("error     3/3  OSError: borte")


def test_json_is_one_document_a_line(database: Database, jobs: Jobs, meanwhile: Callable[..., None]) -> None:
    job_id = database.enqueue()
    meanwhile(lambda: (wait_until_looked_at(database), run(database, job_id)))

    documents = [json.loads(line) for line in jobs("watch", "--json", str(job_id)).lines]

    assert [document["status"] for document in (documents[0], documents[-1])] == ["pending", "completed"]
    assert {document["id"] for document in documents} == {str(job_id)}
    assert 0.5 in [document["progress"] for document in documents]


def test_without_ids_all_unfinished_jobs_are_watched(
    database: Database, jobs: Jobs, meanwhile: Callable[..., None]
) -> None:
    assert "no unfinished job" in jobs("watch").err
    database.enqueue(status="completed")
    other, job_id = database.enqueue("other_job"), database.enqueue()
    meanwhile(lambda: run(database, job_id))

    ended = jobs("watch", "--type", "test_job")

    assert ended.code == 0
    assert str(job_id)[:8] in ended.out
    assert str(other)[:8] not in ended.out


def test_only_waiting_job_says_why_it_waits(database: Database, jobs: Jobs, meanwhile: Callable[..., None]) -> None:
    job_id = database.enqueue("tset_job")
    meanwhile(lambda: (wait_until_looked_at(database), run(database, job_id)))

    assert "Nobody works jobs of type tset_job" in jobs("watch", str(job_id)).lines[0]


def test_job_that_is_deleted_meanwhile_is_told(database: Database, jobs: Jobs, meanwhile: Callable[..., None]) -> None:
    job_id = database.enqueue()
    meanwhile(lambda: (wait_until_looked_at(database), database.connect().execute("delete from job_queue")))

    ended = jobs("watch", str(job_id))

    assert ended.code == ExitCode.NOT_FOUND
    assert f"job {str(job_id)[:8]} is gone: it was deleted" in ended.err


def test_lost_connection_is_made_anew(database: Database, jobs: Jobs, meanwhile: Callable[..., None]) -> None:
    job_id = database.enqueue()

    def cut_and_run() -> None:
        wait_until_looked_at(database)
        database.connect().execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'jobs' and datname = current_database()"
        )
        run(database, job_id)

    meanwhile(cut_and_run)
    ended = jobs("watch", str(job_id))

    assert ended.code == 0
    assert "trying again" in ended.err
    assert "completed" in ended.lines[-1]


def test_ctrl_c_ends_the_watching_and_nothing_else(database: Database) -> None:
    job_id = database.enqueue()
    watch = start_watch(database, job_id)

    watch.send_signal(signal.SIGINT)
    _, told = watch.communicate(timeout=20)

    assert watch.returncode == ExitCode.INTERRUPTED
    assert told == "jobs: stopped watching; the jobs go on\n"
    assert database.job(job_id)["status"] == "pending"


def test_ctrl_c_is_prompt_even_when_the_server_hangs(database: Database) -> None:
    with Proxy(database.server.host, database.server.port) as proxy:
        watch = start_watch(database, database.enqueue(), DATABASE_URL=proxy.dsn(database.dsn("operator")))
        proxy.freeze()
        assert proxy.holds_something.wait(20), "a look is under way, and gets no answer"
        watch.send_signal(signal.SIGINT)

        started = time.monotonic()
        _, told = watch.communicate(timeout=20)
        assert time.monotonic() - started < 3
    assert (watch.returncode, told) == (ExitCode.INTERRUPTED, "jobs: stopped watching; the jobs go on\n")


def test_server_that_restarts_is_waited_for(own_postgres: EmbeddedPostgres, own_database: Database) -> None:
    job_id = own_database.enqueue()
    watch = start_watch(own_database, job_id)

    own_postgres.restart()
    own_database.connect().execute("update job_queue set status = 'completed', completed_at = now()")
    shown, told = watch.communicate(timeout=30)

    assert watch.returncode == 0
    assert "completed" in shown
    assert "trying again" in told


def start_watch(database: Database, job_id: UUID, **variables: str) -> subprocess.Popen[str]:
    """A watch in a process of its own that has had its first look."""
    watch = subprocess.Popen(
        [*COMMAND, "watch", str(job_id)],
        env=environ(database, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watch.stdout is not None
    watch.stdout.readline()
    return watch


def on_terminal(database: Database, *arguments: str, **variables: str) -> tuple[int, str]:
    """Runs a command on a terminal of its own; returns its exit code and all that it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=environ(database, **variables), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the terminal closes with its last program
                break
        elif process.poll() is not None:
            break
    os.close(ours)
    return process.wait(10), written.decode()


def test_terminal_is_redrawn_in_place(database: Database, meanwhile: Callable[..., None]) -> None:
    first, second = database.enqueue(), database.enqueue()
    meanwhile(lambda: (wait_until_looked_at(database), run(database, first), run(database, second)))

    code, written = on_terminal(database, "watch", str(first), str(second))

    assert code == 0
    assert "\x1b[2A\r" in written  # up over both lines
    assert "\x1b[36mrunning  \x1b[0m" in written
    assert "██████████            50%" in written
    assert [re.sub(r"took \d+s", "took", line) for line in screen_after(written)] == [
        f"{str(first)[:8]} test_job completed 1/3  took",
        f"{str(second)[:8]} test_job completed 1/3  took",
    ]


def test_no_color_and_a_dumb_terminal_are_respected(database: Database) -> None:
    database.enqueue(status="error", error_class="OSError")

    assert "\x1b[31m" in on_terminal(database, "list")[1]
    assert "\x1b" not in on_terminal(database, "list", NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal(database, "list", TERM="dumb")[1]


def test_reader_of_a_pipe_that_has_seen_enough_is_no_failure(database: Database) -> None:
    database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 5000)")

    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {' '.join(COMMAND)} list --limit 5000 | head -2"],
        env=environ(database), capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(ended.stdout.splitlines()) == 2


def screen_after(written: str) -> list[str]:
    """The lines that stand on the terminal in the end, without colours; they are only ever written from their start."""
    lines, row = [""], 0
    for token in re.findall(r"\x1b\[\d*A|\x1b\[[JK]|\n|(?:[^\x1b\r\n]|\x1b\[\d+m)+", written):
        if token.endswith("A") and token.startswith("\x1b"):
            row -= int(token[2:-1])
        elif token == "\x1b[J":
            lines[row:] = [""]
        elif token == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif token != "\x1b[K":
            lines[row] = re.sub(r"\x1b\[\d+m", "", token)
    return [line for line in lines if line]
