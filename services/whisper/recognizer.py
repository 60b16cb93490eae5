"""The Whisper model: loaded once, applied to the speech of one unit at a time.

Two things make the text of a unit a function of its audio alone. Nothing is carried from unit to unit or from
window to window (`condition_on_previous_text` off). And the random numbers that the model's second and third try
draw begin anew for each unit: CTranslate2 seeds them once per model object, so the object is made anew before a
second unit draws. Most units never draw.
"""

import gc
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import ctranslate2
from faster_whisper import WhisperModel
from faster_whisper.transcribe import Segment, restore_speech_timestamps

from services.whisper.messages import SAMPLE_RATE, ModelRequest, SpeechRequest, seconds
from services.whisper.units import Unit, Waveform
from sidelinja_jobs import PermanentError

# Three steps instead of Whisper's six: a window that fails at 0.4 does not get better at 1.0, only slower.
TEMPERATURES = [0.0, 0.2, 0.4]
# The prompt's room is shared with the text, and a long list draws names into the text where nobody said them.
HOTWORD_TOKENS = 50
LANGUAGE_WINDOWS = 4
RANDOM_SEED = 20_060_707


class Recognizer:
    """One loaded model."""

    def __init__(self, request: ModelRequest, cpu_threads: int) -> None:
        ctranslate2.set_random_seed(RANDOM_SEED)
        self._whisper = WhisperModel(
            str(request.folder),
            device="cpu",
            compute_type=request.compute_type,
            cpu_threads=cpu_threads,
            local_files_only=True,
        )
        self._random = SeededModel(self._whisper.model, str(request.folder), request.compute_type, cpu_threads)
        self._whisper.model = self._random
        self.cpu_threads = cpu_threads
        self.device: str = self._random.device
        self.compute_type: str = self._random.compute_type

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
        """The language of the first two minutes of speech, and how sure the model is."""
        if not self._random.is_multilingual:
            return "en", 1.0
        language, probability, _ = self._whisper.detect_language(heard, language_detection_segments=LANGUAGE_WINDOWS)
        return language, round(float(probability), 4)

    def transcribe(self, unit: Unit, language: str, request: SpeechRequest) -> Iterator[dict[str, Any]]:
        """The unit's segments, one by one as they are found, in seconds from the start of the file.

        The times of some may lie outside the unit: guards.py puts them right.
        """
        self._random.begin_unit()
        hotwords = ", ".join(self.fitting(request.hotwords)) or None
        found, _ = self._whisper.transcribe(
            unit.heard(),
            language=language,
            beam_size=request.beam_size,
            temperature=TEMPERATURES,
            condition_on_previous_text=False,
            compression_ratio_threshold=2.4,
            log_prob_threshold=-1.0,
            no_speech_threshold=0.6,
            initial_prompt=request.prompt,
            hotwords=hotwords,
            word_timestamps=request.word_timestamps,
            vad_filter=False,
        )
        chunks = [{"start": part.start, "end": part.end} for part in unit.speech]
        for segment in restore_speech_timestamps(found, chunks, SAMPLE_RATE):
            yield as_row(segment, seconds(unit.start))

    def fitting(self, hotwords: tuple[str, ...]) -> tuple[str, ...]:
        """As many of the hotwords, from the first on, as fit into HOTWORD_TOKENS."""
        for count in range(1, len(hotwords) + 1):
            line = " " + ", ".join(hotwords[:count])
            if len(self._whisper.hf_tokenizer.encode(line, add_special_tokens=False).ids) > HOTWORD_TOKENS:
                return hotwords[: count - 1]
        return hotwords


class SeededModel:
    """CTranslate2's model, whose random numbers begin anew with each unit."""

    def __init__(self, model: Any, folder: str, compute_type: str, cpu_threads: int) -> None:
        self._model = model
        self._folder = folder
        self._options = {"device": "cpu", "compute_type": compute_type, "intra_threads": cpu_threads}
        self._drawn_before = False
        self._drawn_now = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def begin_unit(self) -> None:
        """Draws made so far belong to an earlier unit."""
        self._drawn_before = self._drawn_before or self._drawn_now
        self._drawn_now = False

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """As the model's own, which samples when it is given a temperature."""
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
