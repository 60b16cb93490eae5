"""Segments as subtitles: WebVTT, SubRip, plain text and the JSON of Podcasting 2.0.

A segment of Whisper's may be half a minute long; a subtitle has to be read while it is heard. Long segments are split
at sentence ends, commas and spaces, with times from the words where the job asked for them, else by the share of
characters. A speaker's times never run backwards, whatever the model says; two speakers may overlap.
"""

import json
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
PODCAST_VERSION = "1.0.0"

Segment = Mapping[str, Any]


@dataclass(frozen=True)
class Word:
    """A word with its time, measured or estimated."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Cue:
    """One subtitle, in seconds. Its words on one line, whoever says them."""

    start: float
    end: float
    text: str
    speaker: str | None = None


def as_vtt(segments: Sequence[Segment], *, lines: bool = False) -> str:
    """WebVTT. Its text escapes &, < and >, so no text can be taken for a tag or a time line.

    `lines` breaks every cue into at most two lines of 42 characters.
    """
    blocks = []
    for cue in cues(segments, lines=lines):
        voice = f"<v {_escaped(cue.speaker)}>" if cue.speaker else ""
        rows = broken(None, cue.text) if lines else [cue.text]
        blocks.append(f"{_times(cue, '.')}\n{voice}{_escaped(chr(10).join(rows))}\n")
    return "\n".join(["WEBVTT\n", *blocks])


def as_srt(segments: Sequence[Segment], *, lines: bool = False) -> str:
    """SubRip, which knows no escapes: what a player would take for a tag or a time line gets another sign."""
    return "\n".join(
        f"{number}\n{_times(cue, ',')}\n{_harmless(chr(10).join(broken(cue.speaker, cue.text)))}\n"
        for number, cue in enumerate(cues(segments, lines=lines), start=1)
    )


def as_txt(segments: Sequence[Segment]) -> str:
    """One segment a line, after its speaker's name."""
    return "".join(
        f"{_label(_speaker(segment))}{text}\n" for segment in segments if (text := _one_line(segment["text"]))
    )


def as_podcast_json(segments: Sequence[Segment], *, lines: bool = False) -> str:
    """The transcript JSON of Podcasting 2.0, one entry for each subtitle."""
    rows = [
        {
            **({"speaker": cue.speaker} if cue.speaker else {}),
            "startTime": cue.start,
            "endTime": cue.end,
            "body": cue.text,
        }
        for cue in cues(segments, lines=lines)
    ]
    return json.dumps({"version": PODCAST_VERSION, "segments": rows}, ensure_ascii=False, indent=1) + "\n"


def cues(segments: Sequence[Segment], *, lines: bool = False) -> list[Cue]:
    """Subtitles by their start, none before the end of the same speaker's last one, none empty."""
    found: list[Cue] = []
    reached: dict[str | None, float] = {}
    for segment in segments:
        speaker = _speaker(segment)
        for part in _split(_words(segment), speaker, lines):
            start = max(part[0].start, reached.get(speaker, 0.0))
            end = max(part[-1].end, start + SHORTEST_SECONDS)
            if lines:
                end = min(end, start + LONGEST_SECONDS)
            reached[speaker] = end
            found.append(Cue(round(start, 3), round(end, 3), " ".join(word.text for word in part), speaker))
    return sorted(found, key=lambda cue: cue.start)


def broken(speaker: str | None, text: str) -> list[str]:
    """A cue's text on one line, or on two of about the same length; the speaker's name in front."""
    whole = f"{_label(speaker)}{text}"
    first = len(_label(speaker))  # the name stays in one piece
    spaces = [place for place, character in enumerate(whole) if character == " " and place >= first]
    if len(whole) <= LINE_CHARACTERS or not spaces:
        return [whole]
    middle = min(spaces, key=lambda place: (max(place, len(whole) - place - 1) > LINE_CHARACTERS, _off(whole, place)))
    return [whole[:middle], whole[middle + 1 :]]


def _off(text: str, place: int) -> float:
    return abs(place - len(text) / 2)


def _speaker(segment: Segment) -> str | None:
    return _one_line(segment.get("speaker") or "") or None


def _label(speaker: str | None) -> str:
    return f"{speaker}: " if speaker else ""


def _words(segment: Segment) -> list[Word]:
    measured = [
        Word(word["start"], word["end"], text)
        for word in segment.get("words") or []
        if (text := _one_line(word["word"]))
    ]
    return measured or list(_estimated_words(segment))


def _estimated_words(segment: Segment) -> Iterator[Word]:
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


def _split(words: list[Word], speaker: str | None, lines: bool) -> Iterator[list[Word]]:
    if not words:
        return
    if len(words) == 1 or _fits(words, speaker, lines):
        yield words
        return
    place = _best_break([word.text for word in words])
    yield from _split(words[:place], speaker, lines)
    yield from _split(words[place:], speaker, lines)


def _fits(words: list[Word], speaker: str | None, lines: bool) -> bool:
    if words[-1].end - words[0].start > LONGEST_SECONDS:
        return False
    text = " ".join(word.text for word in words)
    if not lines:
        return len(text) <= LONGEST_CHARACTERS
    return all(len(line) <= LINE_CHARACTERS for name in (speaker, None) for line in broken(name, text))


def _best_break(texts: list[str]) -> int:
    """The number of words before the break: near the middle, better after a comma or the end of a sentence."""
    characters = sum(len(text) + 1 for text in texts) - 1
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


def _times(cue: Cue, separator: str) -> str:
    return f"{_clock(cue.start, separator)} --> {_clock(cue.end, separator)}"


def _clock(time: float, separator: str) -> str:
    milliseconds = round(time * 1000)
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{separator}{milliseconds:03}"
