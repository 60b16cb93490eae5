"""Segments as subtitles: WebVTT, SubRip and plain text.

A segment of Whisper's may be half a minute long; a subtitle has to be read while it is heard. Long segments are split
at sentence ends, commas and spaces, with times from the words where the job asked for them, else by the share of
characters. Times never run backwards, whatever the model says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from re import sub
from typing import Any

LONGEST_SECONDS = 7.0
LONGEST_CHARACTERS = 84  # two lines
LINE_CHARACTERS = 42
SHORTEST_SECONDS = 0.1
# How far from the middle a better place may lie, as a share of the text.
BREAK_BONUS = {".": 0.3, "?": 0.3, "!": 0.3, "…": 0.3, ":": 0.25, ";": 0.25, ",": 0.2}


@dataclass(frozen=True)
class Word:
    """A word with its time, measured or estimated."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Cue:
    """One subtitle, in seconds."""

    start: float
    end: float
    text: str


def as_vtt(segments: Sequence[Mapping[str, Any]]) -> str:
    """WebVTT. Its text escapes &, < and >, so no text can be taken for a tag or a time line."""
    blocks = [f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{_escaped(cue.text)}\n" for cue in cues(segments)]
    return "\n".join(["WEBVTT\n", *blocks])


def as_srt(segments: Sequence[Mapping[str, Any]]) -> str:
    """SubRip, which knows no escapes: what a player would take for a tag or a time line gets another sign."""
    return "\n".join(
        f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{_wrapped(_harmless(cue.text))}\n"
        for number, cue in enumerate(cues(segments), start=1)
    )


def as_txt(segments: Sequence[Mapping[str, Any]]) -> str:
    """One segment a line."""
    return "".join(f"{text}\n" for segment in segments if (text := _one_line(segment["text"])))


def cues(segments: Sequence[Mapping[str, Any]]) -> list[Cue]:
    """Subtitles in order, none before the end of the one before it, none empty."""
    found: list[Cue] = []
    reached = 0.0
    for words in map(_words, segments):
        for part in _split(words):
            start = max(part[0].start, reached)
            reached = max(part[-1].end, start + SHORTEST_SECONDS)
            found.append(Cue(round(start, 3), round(reached, 3), " ".join(word.text for word in part)))
    return found


def _words(segment: Mapping[str, Any]) -> list[Word]:
    measured = [
        Word(word["start"], word["end"], text)
        for word in segment.get("words") or []
        if (text := _one_line(word["word"]))
    ]
    return measured or list(_estimated_words(segment))


def _estimated_words(segment: Mapping[str, Any]) -> Iterator[Word]:
    texts = _one_line(segment["text"]).split()
    start, length = segment["start"], segment["end"] - segment["start"]
    total = max(sum(len(text) for text in texts), 1)
    passed = 0
    for text in texts:
        yield Word(
            start + length * passed / total,
            start + length * (passed + len(text)) / total,
            text,
        )
        passed += len(text)


def _split(words: list[Word]) -> Iterator[list[Word]]:
    characters = sum(len(word.text) + 1 for word in words) - 1
    if not words:
        return
    fits = characters <= LONGEST_CHARACTERS and words[-1].end - words[0].start <= LONGEST_SECONDS
    if fits or len(words) == 1:
        yield words
        return
    place = _best_break([word.text for word in words], characters)
    yield from _split(words[:place])
    yield from _split(words[place:])


def _best_break(texts: list[str], characters: int) -> int:
    """The number of words before the break: near the middle, better after a comma or the end of a sentence."""
    passed, places = 0, []
    for place, text in enumerate(texts[:-1], start=1):
        passed += len(text) + 1
        bonus = BREAK_BONUS.get(text[-1], 0.0) * characters
        places.append((abs(passed - characters / 2) - bonus, place))
    return min(places)[1]


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _harmless(text: str) -> str:
    return sub(r"<(?=[/!a-zA-Z])", "‹", text.replace("-->", "→"))


def _wrapped(text: str) -> str:
    """Two lines of about the same length, where one is too long."""
    if len(text) <= LINE_CHARACTERS or " " not in text:
        return text
    spaces = [place for place, character in enumerate(text) if character == " "]
    middle = min(spaces, key=lambda place: abs(place - len(text) / 2))
    return f"{text[:middle]}\n{text[middle + 1 :]}"


def _clock(time: float, separator: str) -> str:
    milliseconds = round(time * 1000)
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{separator}{milliseconds:03}"
