"""What a recognizer writes without anybody saying it: found by what it says of itself, and taken out with a reason.

Whisper was trained on subtitles. Where nobody speaks, or where it is unsure, it writes the credits that stood there,
the same words over and over, or the hints that it was given. Nothing taken out is thrown away: it stands under
`dropped`, with its times and the reason, so that whoever misses a sentence finds it.

A unit is judged on its own, so a resumed run judges as an uninterrupted one does.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.whisper.phrases import CREDITS, NAMES

# Raised when a rule or a list changes: texts made before are then made anew.
GUARDS_VERSION = 1

SILENT_NO_SPEECH, SILENT_LOGPROB = 0.6, -0.5  # measured loops 0.93/-0.78 and 0.80/-0.80, true speech 0.03 to 0.12
LEAST_WORDS, LEAST_DISTINCT = 6, 0.5
LONGEST_PHRASE, MOST_REPEATS = 4, 4
EMPHASIS_REPEATS, SURE_NO_SPEECH = 6, 0.3  # "nei, nei, nei, nei", said by someone
DOUBLED_WORDS = 4
CREDIT_CHARACTERS, CREDIT_NO_SPEECH, CREDIT_OVERLAP = 60, 0.1, 0.3
ECHOED_NAMES, ECHOED_WORDS = 3, 3
CHARACTERS_PER_SECOND, DENSE_CHARACTERS = 30, 20
SPARSE_SPEECH_SECONDS, SPARSE_CHARACTERS_PER_SECOND = 20, 2

REASONS = ("silence", "repetition", "same_as_before", "credit", "echo", "density", "outside")

Row = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """The unit that segments lie in. Times are seconds from the start of the file."""

    start: float
    end: float
    is_last: bool = False
    speech: tuple[tuple[float, float], ...] = ()
    prompt: str | None = None
    hotwords: tuple[str, ...] = ()

    @property
    def speech_seconds(self) -> float:
        return sum(end - start for start, end in self.speech)


def screen(rows: Sequence[Row], frame: Frame) -> tuple[list[Row], list[Row]]:
    """The segments to keep, and those that are not, each with its `reason`."""
    kept: list[Row] = []
    dropped: list[Row] = []
    for row in rows:
        inside = clamped(row, frame)
        if not inside["text"]:
            continue
        if reason := reason_to_drop(inside, kept, frame):
            dropped.append(_as_dropped(inside, reason))
        else:
            kept.append(inside)
    while frame.is_last and kept and is_credit(kept[-1]["text"]):
        dropped.append(_as_dropped(kept.pop(), "credit"))
    return kept, sorted(dropped, key=lambda row: float(row["start"]))


def reason_to_drop(row: Row, before: Sequence[Row], frame: Frame) -> str | None:
    """Why this segment is not speech; None when it is. `before` are the segments kept so far."""
    words = words_of(row["text"])
    if row["end"] <= row["start"]:
        return "outside"
    if is_silence(row):
        return "silence"
    if is_loop(words, is_sure=_is_sure(row)):
        return "repetition"
    if len(before) >= 2 and words and all(words_of(other["text"]) == words for other in before[-2:]):
        return "same_as_before"
    if is_credit(row["text"]) and (_number(row, "no_speech_prob") > CREDIT_NO_SPEECH or is_beside_speech(row, frame)):
        return "credit"
    if is_echo(row, words, frame):
        return "echo"
    if is_too_dense(row):
        return "density"
    return None


def is_silence(row: Row) -> bool:
    """The model itself hears nobody, and is not sure of the words either."""
    return _number(row, "no_speech_prob") > SILENT_NO_SPEECH and _number(row, "avg_logprob") < SILENT_LOGPROB


def is_loop(words: Sequence[str], *, is_sure: bool = False) -> bool:
    """The same few words over and over. A line said twice is none, nor one word that somebody insists on."""
    once = without_doubling(words)
    if len(once) >= LEAST_WORDS and len(set(once)) / len(once) < LEAST_DISTINCT:
        return True
    repeats = [most_repeats(words, length) for length in range(1, LONGEST_PHRASE + 1)]
    return repeats[0] >= (EMPHASIS_REPEATS if is_sure else MOST_REPEATS) or max(repeats[1:]) >= MOST_REPEATS


def without_doubling(words: Sequence[str]) -> Sequence[str]:
    """Without the second of two equal halves that follow each other, somewhere in the words."""
    for length in range(len(words) // 2, DOUBLED_WORDS - 1, -1):
        for first in range(len(words) - 2 * length + 1):
            middle = first + length
            if words[first:middle] == words[middle : middle + length]:
                return [*words[:middle], *words[middle + length :]]
    return words


def most_repeats(words: Sequence[str], length: int) -> int:
    """How often in a row some phrase of so many words stands there; a phrase of one repeated word counts for one."""
    most = min(len(words) // length, 1)
    for first in range(len(words) - length + 1):
        phrase = words[first : first + length]
        if length > 1 and len(set(phrase)) == 1:
            continue
        count = 1
        while words[first + count * length : first + (count + 1) * length] == phrase:
            count += 1
        most = max(most, count)
    return most


def is_credit(text: str) -> bool:
    """A short line such as subtitles end with."""
    line = " ".join(words_of(text))
    return len(text) <= CREDIT_CHARACTERS and bool(
        any(line.startswith(phrase) for phrase in CREDITS) or any(name in line for name in NAMES)
    )


def is_beside_speech(row: Row, frame: Frame) -> bool:
    """Whether the segment lies mostly where no speech was found."""
    inside = sum(max(0.0, min(row["end"], end) - max(row["start"], start)) for start, end in frame.speech)
    return bool(inside < CREDIT_OVERLAP * (row["end"] - row["start"]))


def is_echo(row: Row, words: Sequence[str], frame: Frame) -> bool:
    """The prompt, or the list of names, given back in place of what was said."""
    line = " ".join(words)
    prompt = " ".join(words_of(frame.prompt or ""))
    if prompt and len(words) >= ECHOED_WORDS and line == prompt:
        return True
    if prompt and len(words) >= ECHOED_WORDS and not _is_sure(row) and f" {line} " in f" {prompt} ":
        return True
    names = [" ".join(words_of(name)) for name in frame.hotwords]
    needed = min(len(names), ECHOED_NAMES)
    runs = (names[first:last] for first, last in itertools.combinations(range(len(names) + 1), 2))
    return needed > 1 and any(len(run) >= needed and " ".join(run) == line for run in runs)


def is_too_dense(row: Row) -> bool:
    """More text than can be said in the time."""
    text = row["text"]
    return len(text) >= DENSE_CHARACTERS and len(text) / (row["end"] - row["start"]) > CHARACTERS_PER_SECOND


def is_sparse(rows: Sequence[Row], frame: Frame) -> bool:
    """Much speech and next to no text: something was not understood, or left out."""
    characters = sum(len(row["text"]) for row in rows)
    spoken = frame.speech_seconds
    return spoken > SPARSE_SPEECH_SECONDS and characters < SPARSE_CHARACTERS_PER_SECOND * spoken


def clamped(row: Row, frame: Frame) -> Row:
    """The segment with its times, and those of its words, inside the unit."""
    result = _between(row, frame)
    if "words" in row:
        result["words"] = [_between(word, frame) for word in row["words"]]
    return result


def words_of(text: str) -> list[str]:
    """Lower case, without punctuation."""
    return re.sub(r"[^\w\s]", " ", text.casefold()).split()


def _between(row: Row, frame: Frame) -> Row:
    times = {name: round(min(max(row[name], frame.start), frame.end), 3) for name in ("start", "end")}
    return {**row, **times}


def _is_sure(row: Row) -> bool:
    return _number(row, "no_speech_prob") <= SURE_NO_SPEECH and _number(row, "avg_logprob") >= SILENT_LOGPROB


def _number(row: Row, name: str) -> float:
    return float(row.get(name) or 0.0)


def _as_dropped(row: Row, reason: str) -> Row:
    return {**{name: value for name, value in row.items() if name != "words"}, "reason": reason}
