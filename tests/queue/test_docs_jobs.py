"""Every `jobs …` command of README.md and docs/, as it is written, against a real database and real workers."""

import io
import shlex
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.command_line import Ended, Jobs
from tests.databases import Database
from tests.docs_commands import Command, all_commands, has_test
from tests.queue.sink_session import Sink
from tests.worker_processes import WorkerProcesses

pytestmark = pytest.mark.timeout(180)
COMMANDS = [command for command in all_commands() if command.of_jobs is not None]
# Names of commands, where the text speaks of them: that there is such a command is all that can be tried.
NAMED = {
    "account …", "cancel", "clip", "clip --enrich", "clip [FILE]", "deliveries …", "enqueue", "enqueue --wait",
    "retranscribe", "retry", "shows", "stats …", "stats sources set", "stats sources set …", "token …",
}  # fmt: skip
# Run by another test.
ELSEWHERE = {
    'enqueue count_words text="a b c" --wait': "tests/deploy/test_adding_a_job_type.py::"
    "test_job_ends_with_the_result_that_the_page_shows",
    "migrate": "tests/queue/test_migrate.py::test_four_at_once_fill_an_empty_server",
}
WORKED = {
    "whisper_transcribe": "from services.whisper.payload import WhisperPayload as Payload",
    "openrouter_analyze": "from services.openrouter.payload import AnalyzePayload as Payload",
    "research_clip": "from services.research.payload import ClipPayload as Payload",
}
CLIP: dict[str, Any] = {"mode_used": "offline", "markdown": "# Sak\n", "quality": {"warnings": ["no_llm"]}}
HANDLER = f"def handle(job, ctx):\n    return {CLIP}\n"


class Reader:
    """Somebody who reads the docs and types what stands there, with names of their own in place of the CAPITALS."""

    def __init__(self, database: Database, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database, self.jobs, self._monkeypatch = database, jobs, monkeypatch
        self._sink: Sink | None = None
        self._numbers = count(1)

    def type(self, command: Command) -> Ended:
        line = command.of_jobs or ""
        if line in NAMED:
            return self.jobs(*(word for word in line.split() if word.isalpha()), "--help")
        before, _, file = line.partition(" < ")
        if file or "password" in before:
            given = Path(file).read_bytes() if file else b"et langt passord med ord\n"
            self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        words = shlex.split(before)
        if words[:2] == ["account", "password"]:
            words.append("--password-stdin")
        return self.jobs(*self._filled(words))

    def _filled(self, words: list[str]) -> list[str]:
        made: dict[str, Callable[[], str]] = {
            "ID": lambda: self._job_for(words),
            "ID…": lambda: self._job_for(words),
            "TYPE": lambda: self._type_for(words),
            "TEXT": lambda: "the disk is full",
            "NAME": lambda: self._name_for(words),
            "DAYS": lambda: "30",
            "FIRST": lambda: "2026-11-01",
            "LAST": lambda: "2026-11-02",
            "EVENT…": self._event,
            "FOLDER": lambda: "lyd",
            "PATH": lambda: "episode.mp3",
        }
        return [made[word]() if word in made else word.replace("=ID", f"={self._transcript()}") for word in words]

    def _job_for(self, words: list[str]) -> str:
        if "--enrich" in words:
            return str(self.database.enqueue("research_clip", {"text": "x"}, status="completed", result=Jsonb(CLIP)))
        status = {"retry": "error", "watch": "completed"}.get(words[0], "pending")
        return str(self.database.enqueue("test_job", status=status))[:8]

    def _transcript(self) -> UUID:
        return self.database.enqueue("whisper_transcribe", {"path": "a.mp3"}, status="completed", result=Jsonb({}))

    def _type_for(self, words: list[str]) -> str:
        if words[0] == "resume":
            assert self.jobs("pause", "other_job", "--reason", "the disk is full").code == 0
        return "other_job"

    def _name_for(self, words: list[str]) -> str:
        name = f"navn{next(self._numbers)}"
        if words[0] == "deliveries":
            return self._sink_for(words)
        made = {
            "account": ["account", "add", name, "--role", "viewer"],
            "token": ["token", "add", name, "--scope", "read"],
            "shows": ["shows", "set", name],
            "retranscribe": ["shows", "set", name, "--folder", name],
        }[words[0]]
        if words[1] != "add":
            assert self.jobs(*made).code == 0
        return name

    def _sink_for(self, words: list[str]) -> str:
        if self._sink is None:
            self._sink = Sink(self.database)
        if words[1] == "forget":
            self._sink.leave()
        return "test"

    def _event(self) -> str:
        self._sink = self._sink or Sink(self.database)
        self.database.enqueue()
        self._sink.record(self._sink.next(), "parked")
        return str(self.jobs("deliveries", "list", "--json").document[-1]["event_id"])


@pytest.fixture
def reader(
    database: Database,
    worker_process: WorkerProcesses,
    jobs: Jobs,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Reader:
    for job_type, imports in WORKED.items():
        worker_process.start(database, f"{imports}\n{HANDLER}", job_type=job_type)
    monkeypatch.chdir(tmp_path)
    Path("paste.txt").write_text("Et avsnitt om havn og kai.")
    Path("side.html").write_text("<p>Et avsnitt om havn og kai.</p>")
    Path("clip.json").write_text('{"text": "Et avsnitt om havn og kai."}')
    Path("old.csv").write_text("day,episode,downloads\n2026-11-01,ep1.mp3,4\n")
    database.rows("insert into stats.source (name, show) values ('media', 'Lyd og bilde')")
    return Reader(database, jobs, monkeypatch)


@pytest.mark.parametrize("test", sorted(ELSEWHERE.values()))
def test_test_of_the_others_is_there(test: str) -> None:
    assert has_test(test)


def test_every_command_does_what_it_says(database: Database, reader: Reader) -> None:
    wrong = []
    for command in COMMANDS:
        if command.of_jobs in ELSEWHERE:
            continue
        database.rows("delete from job_queue where status in ('pending', 'retry')")  # `watch` would wait for them
        ended = reader.type(command)
        if ended.code != 0:
            wrong.append(f"{command}\n  ended with {ended.code}: {ended.err.strip() or ended.out.strip()}")

    assert len(COMMANDS) > 80
    assert not wrong, "\n".join(wrong)
