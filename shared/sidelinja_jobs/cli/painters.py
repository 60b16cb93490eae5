"""Three ways to show jobs that change: redrawn in place, as lines when something changes, as JSON lines."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import click

from sidelinja_jobs.cli.documents import job_fields, print_line
from sidelinja_jobs.cli.progress import Pace, ended_line, live_line, type_text
from sidelinja_jobs.cli.rows import JobRow
from sidelinja_jobs.cli.screen import Screen, screen_of
from sidelinja_jobs.cli.text import columns, neutral

# Without redrawing, progress alone is worth a line this often and for this much.
_LINE_SECONDS, _LINE_SHARE = 10.0, 0.1


class Painter(Protocol):
    """Shows what a watch reads, once for each look."""

    def paint(self, live: Sequence[JobRow], ended: Sequence[JobRow], hint: str) -> None:
        """Jobs that go on, jobs that have just ended, and why the one that waits does."""

    def say(self, text: str) -> None:
        """A remark about the watch itself."""


def painter_for(as_json: bool) -> Painter:
    """What suits the output."""
    if as_json:
        return JsonPainter()
    return LivePainter() if screen_of(sys.stdout).is_terminal else LinePainter()


class LivePainter:
    """A line for each job at the foot of the terminal; those that end move up and stay."""

    def __init__(self) -> None:
        self._paces: dict[UUID, Pace] = {}
        self._drawn = 0
        self._type_columns = 0
        self._said = ""

    def paint(self, live: Sequence[JobRow], ended: Sequence[JobRow], hint: str) -> None:
        screen = screen_of(sys.stdout)  # each time: the window may have changed
        for job in live:
            self._paces.setdefault(job.id, Pace()).see(job)
        self._type_columns = max([self._type_columns, *(columns(type_text(job)) for job in (*live, *ended))])
        above = [ended_line(job, screen, self._type_columns) for job in ended]
        self._draw(above, self._block(live, hint, screen))

    def say(self, text: str) -> None:
        if text != self._said:
            self._draw([f"jobs: {neutral(text)}"], [])
        self._said = text

    def _block(self, live: Sequence[JobRow], hint: str, screen: Screen) -> list[str]:
        room = max(1, screen.height - 3)
        live = sorted(live, key=lambda job: job.status != "running")
        width = self._type_columns
        lines = [live_line(job, self._paces[job.id], screen, hint, width) for job in live[:room]]
        if rest := Counter(job.status for job in live[room:]):
            lines.append("… and " + ", ".join(f"{count} {status}" for status, count in sorted(rest.items())))
        return lines

    def _draw(self, above: Sequence[str], block: Sequence[str]) -> None:
        """Over the last block, in one write, so that nothing flickers."""
        up = f"\x1b[{self._drawn}A\r" if self._drawn else "\r"
        text = "".join(f"{line}\x1b[K\n" for line in (*above, *block))
        click.echo(f"{up}{text}\x1b[J", nl=False, color=True)
        self._drawn = len(block)


class LinePainter:
    """A line whenever a job changes, for pipes and logs. Progress alone comes at most every few seconds."""

    def __init__(self) -> None:
        self._paces: dict[UUID, Pace] = {}
        self._told: dict[UUID, JobRow] = {}
        self._said = ""

    def paint(self, live: Sequence[JobRow], ended: Sequence[JobRow], hint: str) -> None:
        screen = screen_of(sys.stdout)
        for job in live:
            self._paces.setdefault(job.id, Pace()).see(job)
            if _is_news(self._told.get(job.id), job):
                self._told[job.id] = job
                click.echo(live_line(job, self._paces[job.id], screen, hint))
        for job in ended:
            click.echo(ended_line(job, screen))

    def say(self, text: str) -> None:
        if text != self._said:
            click.echo(f"jobs: {neutral(text)}", err=True)
        self._said = text


class JsonPainter:
    """A document on a line of its own whenever something about a job changes."""

    def __init__(self) -> None:
        self._paces: dict[UUID, Pace] = {}
        self._told: dict[UUID, object] = {}
        self._said = ""

    def paint(self, live: Sequence[JobRow], ended: Sequence[JobRow], hint: str) -> None:
        for job in (*live, *ended):
            pace = self._paces.setdefault(job.id, Pace())
            pace.see(job)
            told = (job.status, job.attempts, job.progress, job.progress_note, job.cancel_requested_at)
            if self._told.get(job.id) != told:
                self._told[job.id] = told
                print_line(job_fields(job) | {"seconds_left": pace.seconds_left(job), "at": job.read_at})

    def say(self, text: str) -> None:
        if text != self._said:
            click.echo(f"jobs: {neutral(text)}", err=True)
        self._said = text


def _is_news(before: JobRow | None, job: JobRow) -> bool:
    if before is None:
        return True
    if (before.status, before.attempts, before.started_at) != (job.status, job.attempts, job.started_at):
        return True
    if before.cancel_requested_at != job.cancel_requested_at or before.is_paused != job.is_paused:
        return True
    if (job.read_at - before.read_at).total_seconds() < _LINE_SECONDS:
        return (job.progress or 0.0) - (before.progress or 0.0) >= _LINE_SHARE
    return (before.progress, before.progress_note) != (job.progress, job.progress_note)
