"""One run of one job, seen from the worker: units come in, checkpoints and progress go out."""

import time
from datetime import UTC, datetime
from typing import Any

from services.whisper.messages import SAMPLE_RATE, UnitProgress, UnitResult, seconds
from services.whisper.metrics import TranscriptionMetrics
from services.whisper.resume import as_checkpoint, usable_units
from sidelinja_jobs import Context, Job

ALMOST_DONE = 0.99  # what is left is writing


class Transcription:
    """The units of this run and of earlier ones, and the time that this run takes."""

    def __init__(self, job: Job[Any], ctx: Context, metrics: TranscriptionMetrics | None = None) -> None:
        self._ctx = ctx
        self._metrics = metrics
        self._started = time.monotonic()
        self._queue_seconds = (datetime.now(UTC) - max(job.created_at, job.scheduled_for)).total_seconds()
        self._hash_seconds = 0.0
        self._key = ""
        self.units: list[UnitResult] = []
        self.resumed = 0

    def take_over(self, key: str) -> None:
        """Uses the checkpoints of earlier runs when they carry this key; forgets them when they do not."""
        self._hash_seconds = time.monotonic() - self._started
        self._key = key
        checkpoints = self._ctx.checkpoints()
        self.units = usable_units(checkpoints, key)
        self.resumed = len(self.units)
        if self.resumed:
            self._ctx.log.info("finished units taken over", units=self.resumed, seconds=self.reached_seconds)
        elif checkpoints:
            self._ctx.log.info("finished units dropped: the file or the settings changed", units=len(checkpoints))
            self._ctx.drop_checkpoints()
        if self._metrics:
            self._metrics.resumed_units.inc(self.resumed)

    @property
    def is_complete(self) -> bool:
        return bool(self.units) and self.units[-1].is_last

    @property
    def reached_sample(self) -> int:
        return self.units[-1].end_sample if self.units else 0

    @property
    def reached_seconds(self) -> float:
        return seconds(self.reached_sample)

    @property
    def language(self) -> str | None:
        """The language that a finished unit found; it holds for the units that follow."""
        return next((unit.language for unit in self.units if unit.language is not None), None)

    def receive(self, message: UnitProgress | UnitResult) -> None:
        """A message of the engine's."""
        if isinstance(message, UnitResult):
            self._ctx.checkpoint(as_checkpoint(message, self._key))
            self.units.append(message)
            self._count(message)
            message = UnitProgress("transcribing", self.reached_seconds, message.decoding.container_seconds)
        self._ctx.progress(*progress_of(message))

    def timing(self) -> dict[str, float | int]:
        """Seconds by kind of work, of this run alone; units also of earlier ones."""
        own = self.units[self.resumed :]
        wall = time.monotonic() - self._started
        spent = {name: round(sum(unit.seconds_spent[name] for unit in own), 3) for name in UnitResult.SPENT}
        audio = sum(unit.end_sample - unit.start_sample for unit in own) / SAMPLE_RATE
        return {
            "queue_s": round(max(self._queue_seconds, 0.0), 3),
            "hash_s": round(self._hash_seconds, 3),
            **spent,
            "wall_s": round(wall, 3),
            "rtf": round(audio / wall, 2),
            "units": len(self.units),
            "resumed_units": self.resumed,
        }

    def _count(self, unit: UnitResult) -> None:
        if self._metrics:
            self._metrics.audio_seconds.inc((unit.end_sample - unit.start_sample) / SAMPLE_RATE)
            self._metrics.processing_seconds.inc(sum(unit.seconds_spent.values()))


def progress_of(message: UnitProgress) -> tuple[float, str]:
    """The share done and a note such as "transcribing 3:20 of 12:05".

    The container's length may be missing or wrong; then the note says what is known.
    """
    total = message.total_seconds or 0.0
    if total <= message.seconds:
        return (ALMOST_DONE if total else 0.0), f"{message.stage} {clock(message.seconds)}"
    share = min(message.seconds / total, ALMOST_DONE)
    return share, f"{message.stage} {clock(message.seconds)} of {clock(total)}"


def clock(time_seconds: float) -> str:
    """3:20, or 1:03:20."""
    minutes, second = divmod(int(time_seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
