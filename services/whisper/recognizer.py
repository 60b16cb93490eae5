"""The Whisper model: loaded once, applied to the speech of one unit at a time.

Two things make the text of a unit a function of its audio alone. Nothing is carried from unit to unit or from
window to window (`condition_on_previous_text` off). And the random numbers that the model's second and third try
draw begin anew for each unit: CTranslate2 seeds them once per model object, so the object is made anew before a
second unit draws. Most units never draw; on a GPU, where loading takes seconds, none does.
"""

import gc
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ctranslate2
from faster_whisper import BatchedInferencePipeline
from faster_whisper.audio import pad_or_trim
from faster_whisper.transcribe import Segment, restore_speech_timestamps

from services.whisper.device import BATCH_SIZES, is_out_of_memory, load_model
from services.whisper.messages import SAMPLE_RATE, ModelRequest, SpeechRequest, seconds
from services.whisper.units import Unit, Waveform, speech_windows
from sidelinja_jobs import PermanentError
from sidelinja_jobs.errors import HandlerError

# Three steps instead of Whisper's six: a window that fails at 0.4 does not get better at 1.0, only slower.
TEMPERATURES = [0.0, 0.2, 0.4]
# The prompt's room is shared with the text, and a long list draws names into the text where nobody said them.
HOTWORD_TOKENS = 50
LANGUAGE_WINDOWS = 4
WINDOW_SAMPLES, INTRO_SAMPLES = 30 * SAMPLE_RATE, 15 * SAMPLE_RATE
RANDOM_SEED = 20_060_707


class Recognizer:
    """One loaded model."""

    def __init__(self, request: ModelRequest, cpu_threads: int) -> None:
        ctranslate2.set_random_seed(RANDOM_SEED)
        loaded = load_model(request, cpu_threads)
        self._whisper = loaded.whisper
        options = {"device": loaded.device, "compute_type": loaded.compute_type, "intra_threads": cpu_threads}
        self._random = SeededModel(self._whisper.model, str(request.folder), options)
        self._whisper.model = self._random
        self.cpu_threads = cpu_threads
        self.device: str = self._random.device
        self.compute_type: str = self._random.compute_type
        self.batch_size, self.device_note = loaded.batch_size, loaded.note

    def require_language(self, language: str) -> None:
        """Raises PermanentError when this model does not know the language."""
        known = "en" if not self._random.is_multilingual else None
        token = self._whisper.hf_tokenizer.token_to_id(f"<|{language}|>")
        if token is None or (known and language != known):
            raise PermanentError(
                f"Language {language!r} is not one that this model transcribes"
                f"{' (it is an English-only model)' if known else ''}. Next: leave out the language, or set "
                "WHISPER_MODEL to a multilingual model",
                error_class="unsupported_language",
            )

    def detect_language(self, heard: Waveform) -> tuple[str, float]:
        """The language of most of the speech, and how sure the model is of it on the average.

        It listens to windows all over the speech, since the beginning may be a jingle or another voice.
        """
        if not self._random.is_multilingual:
            return "en", 1.0
        chances: dict[str, float] = {}
        windows = language_windows(heard.size)
        listened = sum(window.stop - window.start for window in windows)
        for window in windows:
            features = self._whisper.feature_extractor(heard[window])
            found = self._random.detect_language(self._whisper.encode(pad_or_trim(features)))[0]
            share = (window.stop - window.start) / listened
            for token, chance in found:
                chances[token[2:-2]] = chances.get(token[2:-2], 0.0) + chance * share
        # Two ways of writing one spoken language: together they stand against Swedish and Danish.
        more, less = sorted(("no", "nn"), key=lambda code: -chances.get(code, 0.0))
        chances[more] = chances.get(more, 0.0) + chances.pop(less, 0.0)
        language = max(chances, key=lambda code: chances[code])
        return language, round(float(chances[language]), 4)

    def transcribe(
        self, unit: Unit, language: str, request: SpeechRequest, on_step: Callable[[], None] = lambda: None
    ) -> Iterator[dict[str, Any]]:
        """The unit's segments, one by one as they are found, in seconds from the start of the file.

        `on_step` is called before each piece of work, since a window without speech gives no segment.
        The times of some may lie outside the unit: guards.py puts them right.
        """
        self._random.begin_unit()
        self._random.on_step = on_step
        common = {
            "language": language,
            "beam_size": request.beam_size,
            "initial_prompt": request.prompt,
            "hotwords": ", ".join(self.fitting(request.hotwords)) or None,
            "word_timestamps": request.word_timestamps,
            "vad_filter": False,
        }
        found = self._in_batches(unit, common) if self.device == "cuda" else self._one_by_one(unit, common)
        chunks = [{"start": part.start, "end": part.end} for part in unit.speech]
        for segment in restore_speech_timestamps(found, chunks, SAMPLE_RATE):
            yield as_row(segment, seconds(unit.start))

    def _one_by_one(self, unit: Unit, common: dict[str, Any]) -> Iterable[Segment]:
        found: Iterable[Segment] = self._whisper.transcribe(
            unit.heard(),
            temperature=TEMPERATURES,
            condition_on_previous_text=False,
            compression_ratio_threshold=2.4,
            log_prob_threshold=-1.0,
            no_speech_threshold=0.6,
            **common,
        )[0]
        return found

    def _in_batches(self, unit: Unit, common: dict[str, Any]) -> list[Segment]:
        """Many windows at once; fewer where the GPU's memory does not do. Nothing is drawn by lot here."""
        clips = [
            {"start": window.start / SAMPLE_RATE, "end": window.end / SAMPLE_RATE} for window in speech_windows(unit)
        ]
        while True:
            try:
                found, _ = BatchedInferencePipeline(self._whisper).transcribe(
                    unit.heard(),
                    temperature=0.0,
                    without_timestamps=False,
                    clip_timestamps=clips,
                    batch_size=self.batch_size,
                    **common,
                )
                return list(found)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                if self.batch_size == 1:
                    raise HandlerError(
                        f"The GPU has no memory left for a single window: {error}. Next: set WHISPER_COMPUTE_TYPE to "
                        "int8_float16, take a smaller WHISPER_MODEL, or end what else uses the GPU",
                        error_class="out_of_memory",
                    ) from error
                self.batch_size = next((size for size in BATCH_SIZES if size < self.batch_size), 1)

    def fitting(self, hotwords: tuple[str, ...]) -> tuple[str, ...]:
        """As many of the hotwords, from the first on, as fit into HOTWORD_TOKENS."""
        for count in range(1, len(hotwords) + 1):
            line = " " + ", ".join(hotwords[:count])
            if len(self._whisper.hf_tokenizer.encode(line, add_special_tokens=False).ids) > HOTWORD_TOKENS:
                return hotwords[: count - 1]
        return hotwords


def language_windows(size: int) -> list[slice]:
    """Up to LANGUAGE_WINDOWS windows of 30 s: the middles of equal parts, or all of a short piece.

    What comes first is left out where there is enough after it.
    """
    first = INTRO_SAMPLES if size >= INTRO_SAMPLES + WINDOW_SAMPLES else 0
    left = size - first
    if left <= LANGUAGE_WINDOWS * WINDOW_SAMPLES:
        return [slice(start, min(start + WINDOW_SAMPLES, size)) for start in range(first, size, WINDOW_SAMPLES)]
    part = left // LANGUAGE_WINDOWS
    starts = (first + number * part + (part - WINDOW_SAMPLES) // 2 for number in range(LANGUAGE_WINDOWS))
    return [slice(start, start + WINDOW_SAMPLES) for start in starts]


class SeededModel:
    """CTranslate2's model, whose random numbers begin anew with each unit."""

    def __init__(self, model: Any, folder: str, options: dict[str, Any]) -> None:
        self._model = model
        self._folder = folder
        self._options = options
        self._drawn_before = False
        self._drawn_now = False
        self.on_step: Callable[[], None] = lambda: None  # called before each piece of work, as a sign of life

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode(self, *args: Any, **kwargs: Any) -> Any:
        """As the model's own."""
        self.on_step()
        return self._model.encode(*args, **kwargs)

    def begin_unit(self) -> None:
        """Draws made so far belong to an earlier unit."""
        self._drawn_before = self._drawn_before or self._drawn_now
        self._drawn_now = False

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """As the model's own, which samples when it is given a temperature."""
        self.on_step()
        if kwargs.get("sampling_temperature"):
            if self._drawn_before:
                self._start_over()
            self._drawn_now = True
        return self._model.generate(*args, **kwargs)

    def _start_over(self) -> None:
        del self._model
        gc.collect()  # the old weights go before the new ones come
        self._model = ctranslate2.models.Whisper(self._folder, **self._options)
        self._drawn_before = False


def as_row(segment: Segment, unit_start: float) -> dict[str, Any]:
    """A segment as it is kept: times of the file, figures rounded, no NaN."""
    row: dict[str, Any] = {
        "start": _time(unit_start + segment.start),
        "end": _time(unit_start + segment.end),
        "text": clean(segment.text).strip(),
        "avg_logprob": finite(segment.avg_logprob),
        "no_speech_prob": finite(segment.no_speech_prob),
        "compression_ratio": finite(segment.compression_ratio),
        "temperature": finite(segment.temperature),
    }
    if segment.words is not None:
        row["words"] = [
            {
                "start": _time(unit_start + word.start),
                "end": _time(unit_start + word.end),
                "word": clean(word.word),
                "probability": finite(word.probability),
            }
            for word in segment.words
        ]
    return row


def clean(text: str) -> str:
    """Text on one line, without control characters and halves of surrogate pairs."""
    line = re.sub(r"\s+", " ", text)
    return "".join(character for character in line if unicodedata.category(character) not in {"Cc", "Cs"})


def finite(figure: float | None) -> float | None:
    """Four decimals; None for what JSON cannot hold."""
    if figure is None or figure != figure or abs(figure) == float("inf"):
        return None
    return round(float(figure), 4)


def _time(time: float) -> float:
    return round(float(time), 3)  # words carry numpy's floats
