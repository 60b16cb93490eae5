"""One run of one job, seen from the worker: units come in, checkpoints and progress go out."""

from typing import Any, Protocol

from services.whisper.deaths import Deaths, begin_record, deaths_on, end_record
from services.whisper.messages import SAMPLE_RATE, UnitProgress, UnitResult, UnitStarted, seconds
from services.whisper.metrics import TranscriptionMetrics
from services.whisper.progress import Speedometer, clock, progress_of
from services.whisper.resume import as_checkpoint, is_record, usable_units
from sidelinja_jobs import Checkpoint


class TranscriptionContext(Protocol):
    """What a transcription needs of its job's context."""

    log: Any

    def progress(self, fraction: float | None, note: str | None = None) -> None: ...

    def checkpoints(self) -> list[Checkpoint]: ...

    def checkpoint(self, data: Any) -> None: ...

    def drop_checkpoints(self) -> None: ...


class Transcription:
    """The units of this run and of earlier ones."""

    def __init__(self, ctx: TranscriptionContext, metrics: TranscriptionMetrics | None = None) -> None:
        self._ctx = ctx
        self._metrics = metrics
        self._key = ""
        self._records: list[Any] = []  # what the checkpoints say of runs and deaths
        self._speedometer = Speedometer()
        self._current: UnitStarted | None = None
        self.total_seconds: float | None = None  # by the container's word
        self.units: list[UnitResult] = []
        self.resumed = 0

    def take_over(self, key: str) -> None:
        """Uses the checkpoints of earlier runs when they carry this key; forgets them when they do not."""
        self._key = key
        checkpoints = self._ctx.checkpoints()
        found = [checkpoint for checkpoint in checkpoints if not is_record(checkpoint.data, key)]
        self.units = usable_units(found, key)
        self.resumed = len(self.units)
        self._records = [checkpoint.data for checkpoint in checkpoints]
        if self.resumed:
            self._ctx.log.info("finished units taken over", units=self.resumed, seconds=self.reached_seconds)
        elif found:
            self._ctx.log.info("finished units dropped: the file or the settings changed", units=len(found))
            self._ctx.drop_checkpoints()
            self._records = []
        if self._metrics:
            self._metrics.resumed_units.inc(self.resumed)

    @property
    def is_complete(self) -> bool:
        return bool(self.units) and self.units[-1].is_last

    @property
    def own_units(self) -> list[UnitResult]:
        """Those that this run finished."""
        return self.units[self.resumed :]

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

    def receive(self, message: UnitStarted | UnitProgress | UnitResult) -> None:
        """A message of the engine's."""
        if isinstance(message, UnitStarted):
            self._current = message
            self._speedometer.begin(seconds(message.start_sample))
            return
        if isinstance(message, UnitResult):
            self._record(as_checkpoint(message, self._key))
            self.units.append(message)
            self._current = None
            self._count(message)
            message = UnitProgress("transcribing", self.reached_seconds, message.decoding.container_seconds)
        self.total_seconds = message.total_seconds
        self._ctx.progress(*progress_of(message, len(self.units), self._speedometer.speed(message)))

    def begin_run(self, attempt: int) -> None:
        """The engine begins at the first unit that is not finished."""
        self._current = None
        self._record(begin_record(self._key, attempt, len(self.units)))

    def end_run(self, death: str | None) -> None:
        """The engine failed at the unit in work: by its death, or otherwise."""
        self._record(end_record(self._key, len(self.units), death=death))

    def deaths(self, attempt: int) -> Deaths:
        """What happened at the first unit that is not finished, before this attempt and in it."""
        return deaths_on(self._records, self._key, len(self.units), attempt)

    @property
    def place(self) -> str:
        """The unit in work: "unit 3 (10:00 to 15:00)", counted from 1."""
        start = clock(self.reached_seconds)
        times = (
            f"from {start} on" if self._current is None else f"{start} to {clock(seconds(self._current.end_sample))}"
        )
        return f"unit {len(self.units) + 1} ({times})"

    def _record(self, data: dict[str, Any]) -> None:
        self._ctx.checkpoint(data)
        self._records.append(data)

    def _count(self, unit: UnitResult) -> None:
        if self._metrics:
            self._metrics.audio_seconds.inc((unit.end_sample - unit.start_sample) / SAMPLE_RATE)
            self._metrics.processing_seconds.inc(sum(unit.seconds_spent.values()))
            for row in unit.dropped:
                self._metrics.dropped_segments[row["reason"]].inc()
