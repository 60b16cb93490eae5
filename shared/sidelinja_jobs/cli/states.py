"""What state a job is in, in a word and in a few words: the same in lists, lines and pages."""

from sidelinja_jobs.cli.durations import age, brief, relative
from sidelinja_jobs.cli.rows import WAITING, JobRow
from sidelinja_jobs.cli.text import first_line

COLOURS = {"completed": "green", "running": "cyan", "retry": "yellow", "error": "red"}


def status_text(job: JobRow) -> str:
    """The status, and what was asked of it."""
    return "running, cancelling" if job.status == "running" and job.cancel_requested_at else job.status


def status_colour(job: JobRow) -> str | None:
    return None if job.was_cancelled else COLOURS.get(job.status)


def now_text(job: JobRow) -> str:
    """Where a job is at, in a few words."""
    now = job.read_at
    if job.status == "running":
        share = "" if job.progress is None else f"{job.progress:.0%} "
        note = f" {first_line(job.progress_note)}" if job.progress_note else ""
        return f"{share}{age(job.started_at, now)}{note}"
    if job.status in WAITING:
        if job.is_paused:
            return "paused"
        wait = (job.scheduled_for - now).total_seconds()
        return f"in {brief(wait)}" if wait > 0 else f"due {brief(-wait)}"
    return ", ".join(part for part in (relative(job.completed_at, now), took_text(job)) if part)


def took_text(job: JobRow) -> str:
    """How long the last run took; nothing when the two moments cannot belong to the same run."""
    if job.started_at is None or job.completed_at is None or job.completed_at < job.started_at:
        return ""
    return f"took {brief((job.completed_at - job.started_at).total_seconds())}"


def error_text(job: JobRow) -> str:
    """Class and first line of the last failure."""
    parts = [job.error_class or "", first_line(job.error_msg or "")]
    return ": ".join(part for part in parts if part)
