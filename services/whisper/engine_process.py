"""The engine's process, seen from the worker: how long it may take, what its death means, and when it is renewed."""

from dataclasses import dataclass, replace
from typing import Any

from services.whisper.messages import SAMPLE_RATE, EngineReport, EngineRequest, ModelRequest, SpeechRequest, UnitResult
from services.whisper.pace import Pace
from services.whisper.transcription import Transcription
from sidelinja_jobs import ChildDiedError, ChildError, ChildProcess, ChildTimeoutError, PermanentError, SettingsError
from sidelinja_jobs.errors import HandlerError
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.metrics import count_child_ends

TARGET = "services.whisper.engine:transcribe"
JOB_TYPE = "whisper_transcribe"
# What the libraries say in errors of no class of their own: MKL, ONNX Runtime, the C++ library.
NO_MEMORY = ("failed to allocate memory", "bad_alloc", "bad allocation")


@dataclass(frozen=True)
class EngineLimits:
    """When the process is ended between two jobs; 0 = never."""

    jobs: int = 0
    rss_bytes: int = 0


class Engine:
    """One engine process with one model, warm between jobs."""

    def __init__(
        self,
        model: ModelRequest,
        limits: EngineLimits = EngineLimits(),
        *,
        target: str = TARGET,
    ) -> None:
        self._model = model
        self._limits = limits
        self._child = ChildProcess(target, name="whisper engine", on_end=count_child_ends(JOB_TYPE))
        self._pace = Pace()
        self._jobs = 0
        self.report: EngineReport | None = None

    @property
    def pid(self) -> int | None:
        """The process, where one is alive."""
        return self._child.pid

    def load(self) -> EngineReport:
        """Starts the process and loads the model.

        Raises:
            SettingsError: a GPU is demanded and none works.
            ChildError: the model cannot be loaded.
        """
        try:
            report: EngineReport = self._child.call(EngineRequest(self._model, SpeechRequest(None)))
        except ChildError as error:
            if error.child_class != "NoDeviceError":
                raise
            raise SettingsError(
                f"{error}. Next: set WHISPER_DEVICE to auto or cpu, or give the worker a GPU with a driver that is new "
                "enough"
            ) from error
        if report.device_note is not None:
            get_logger(job_type=JOB_TYPE).warning(
                "the GPU is not used", device=report.device, reason=report.device_note
            )
        self.report = report
        self._pace = Pace(report.device)
        return report

    @property
    def arithmetic(self) -> str:
        """What computes, and how: part of what decides a text."""
        return "" if self.report is None else f"{self.report.device}:{self.report.compute_type}"

    def run(
        self, request: EngineRequest, transcription: Transcription, *, attempt: int = 1, lenient: bool = False
    ) -> EngineReport:
        """Transcribes what is missing; units and progress go to the transcription.

        Raises:
            PermanentError: the engine died twice on one unit (class poison_unit).
            HandlerError: it died (child_died), gave no sign of life (engine_stalled), took too long (timeout), or
                the machine failed (out_of_memory, cuda_error).
        """
        is_skipping = False
        while True:
            deaths = transcription.deaths(attempt)
            if deaths.is_poison and (is_skipping or not lenient):
                raise _poison(transcription, str(deaths))
            is_skipping = deaths.is_poison
            request = _from_here(request, transcription, skip_first=is_skipping)
            transcription.begin_run(attempt)
            try:
                self.report = self._call(request, transcription)
                return self.report
            except (ChildDiedError, ChildTimeoutError) as error:
                failure = _failure(error, transcription.place)
                is_slow = failure.error_class == "timeout"
                transcription.end_run(None if is_slow else str(error))
                if is_slow or not transcription.deaths(attempt).is_poison:
                    raise failure from error
            except Exception as error:
                transcription.end_run(None)
                if (kind := _trouble(error)) is None:
                    raise
                self._child.recycle()  # nothing works on a GPU after such an error, and memory is whole again
                raise HandlerError(f"{error}, in {transcription.place}", error_class=kind) from error

    def between_jobs(self) -> None:
        """Ends a process that did its number of jobs, or holds more memory than it may; the next job starts another."""
        self._jobs += 1
        limits = self._limits
        is_due = limits.jobs and self._jobs >= limits.jobs
        if is_due or (limits.rss_bytes and self._child.rss_bytes > limits.rss_bytes):
            self._child.recycle()
            self._jobs = 0

    def close(self) -> None:
        """Ends the process."""
        self._child.close()

    def _call(self, request: EngineRequest, transcription: Transcription) -> EngineReport:
        def receive(message: Any) -> None:
            if isinstance(message, UnitResult):
                audio = (message.end_sample - message.start_sample) / SAMPLE_RATE
                self._pace.note(audio, sum(message.seconds_spent.values()))
            transcription.receive(message)

        report: EngineReport = self._child.call(
            request,
            receive,
            timeout_seconds=lambda: self._pace.longest_call(_duration(transcription)),
            silence_seconds=self._pace.longest_silence,
        )
        return report


def _from_here(request: EngineRequest, transcription: Transcription, *, skip_first: bool) -> EngineRequest:
    speech = replace(request.speech, language=request.speech.language or transcription.language)
    return replace(
        request,
        speech=speech,
        first_unit=len(transcription.units),
        start_sample=transcription.reached_sample,
        skip_first=skip_first,
    )


def _duration(transcription: Transcription) -> float | None:
    """What the container says, or what was reached where that is more; unknown before the first message."""
    stated = transcription.total_seconds
    return None if stated is None else max(stated, transcription.reached_seconds)


def _trouble(error: Exception) -> str | None:
    """The error class of what is the machine's fault and not the job's; None for the rest."""
    if not isinstance(error, ChildError):
        return None
    if error.child_class.endswith("MemoryError") or any(words in str(error).lower() for words in NO_MEMORY):
        return "out_of_memory"
    return "cuda_error" if any(name in str(error) for name in ("CUDA", "CUBLAS", "cublas")) else None


def _failure(error: ChildDiedError | ChildTimeoutError, place: str) -> HandlerError:
    error_class = "child_died"
    if isinstance(error, ChildTimeoutError):
        error_class = "engine_stalled" if error.is_silent else "timeout"
    return HandlerError(f"{error}, in {place}; the units before it are kept", error_class=error_class)


def _poison(transcription: Transcription, deaths: str) -> PermanentError:
    return PermanentError(
        f"The engine dies on {transcription.place}: {deaths}. Next: give the worker more memory and retry the job, "
        'cut this part out of the audio, or set "lenient": true in the payload to leave it out',
        error_class="poison_unit",
    )
