"""Tracks of a conversation: merged by time, and each with its own finished units."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.whisper.media import FileChangedError
from services.whisper.messages import SAMPLE_RATE, DecodeCounts, UnitResult
from services.whisper.model import ModelFolder
from services.whisper.payload import Track, WhisperPayload
from services.whisper.tracks import OpenTrack, TrackContext, open_tracks
from services.whisper.transcript import Origin, Voice, build_conversation
from sidelinja_jobs import Checkpoint

MODEL = ModelFolder("small", Path(), "0" * 64)
ORIGIN = Origin("kari.mp3", "a" * 64, 5, MODEL, "int8", "cpu", {}, "5e77", True, {})


def unit(
    *segments: tuple[float, float, str],
    length: float = 30.0,
    flags: list[str] | None = None,
    dropped: list[dict[str, Any]] | None = None,
) -> UnitResult:
    rows = [{"start": start, "end": end, "text": text} for start, end, text in segments]
    samples = int(length * SAMPLE_RATE)
    speech = int(sum(end - start for start, end, _ in segments) * SAMPLE_RATE)
    language = "no" if rows else None
    counts = DecodeCounts(10, 0, length)
    return UnitResult(0, 0, samples, True, speech, language, None, rows, counts, {}, flags or [], dropped or [])


def voice(speaker: str, *units: UnitResult) -> Voice:
    return Voice(speaker, f"{speaker}.mp3", speaker[0] * 64, 5, units)


def test_segments_stand_by_time_with_their_speakers_and_overlaps_are_kept() -> None:
    transcript = build_conversation(
        [
            voice("Kari", unit((0, 4, "Hei."), (9, 12, "Ja."), (20, 21, "Ha det."))),
            voice("Ola", unit((3.5, 8, "Hallo."), (9, 10, "Nei."), length=31)),
        ],
        ORIGIN,
    )

    assert [(row["id"], row["speaker"], row["start"]) for row in transcript["segments"]] == [
        (0, "Kari", 0),
        (1, "Ola", 3.5),
        (2, "Ola", 9),
        (3, "Kari", 9),
        (4, "Kari", 20),
    ]
    assert transcript["text"] == "Hei. Hallo. Nei. Ja. Ha det."
    assert transcript["duration"] == 31
    assert transcript["speech_seconds"] == 13.5
    assert [track["speaker"] for track in transcript["tracks"]] == ["Kari", "Ola"]
    assert "source" not in transcript


def test_what_was_dropped_is_kept_by_time_with_its_speaker_and_counted() -> None:
    loop = {"start": 5.0, "end": 9.0, "text": "veldig veldig", "reason": "repetition"}
    credit = {"start": 1.0, "end": 2.0, "text": "Teksting av", "reason": "credit"}

    transcript = build_conversation(
        [voice("Kari", unit(dropped=[loop])), voice("Ola", unit(dropped=[credit, loop]))], ORIGIN
    )

    assert [(row["speaker"], row["reason"]) for row in transcript["dropped"]] == [
        ("Ola", "credit"),
        ("Kari", "repetition"),
        ("Ola", "repetition"),
    ]
    assert transcript["dropped_by_reason"] == {"credit": 1, "repetition": 2}


def test_remarks_name_the_speaker() -> None:
    transcript = build_conversation(
        [voice("Kari", unit((0, 4, "Hei."), flags=["hotwords_cut"])), voice("Ola", unit())], ORIGIN
    )

    assert transcript["flags"] == ["hotwords_cut", "silent_track"]
    assert transcript["notes"][0].startswith("Kari: Not all hotwords")
    assert transcript["notes"][1].startswith("Ola: No speech")


def test_conversation_in_which_nobody_speaks_has_no_speech() -> None:
    transcript = build_conversation([voice("Kari", unit()), voice("Ola", unit())], ORIGIN)

    assert transcript["flags"] == ["no_speech"]
    assert transcript["language"] is None


class FakeContext:
    """Checkpoints in a list, progress in another."""

    def __init__(self) -> None:
        self.rows: list[Checkpoint] = []
        self.reports: list[tuple[float | None, str | None]] = []
        self.log = self

    def bind(self, **_: object) -> "FakeContext":
        return self

    def progress(self, fraction: float | None, note: str | None = None) -> None:
        self.reports.append((fraction, note))

    def checkpoints(self) -> list[Checkpoint]:
        return list(self.rows)

    def checkpoint(self, data: Any) -> None:
        self.rows.append(Checkpoint(len(self.rows) + 1, data, datetime.now(UTC)))

    def drop_checkpoints(self) -> None:
        self.rows.clear()


@pytest.fixture
def tracks(tmp_path: Path) -> Any:
    (tmp_path / "kari.mp3").write_bytes(b"x" * 300)
    (tmp_path / "ola.mp3").write_bytes(b"x" * 100)
    both = (Track(path="kari.mp3", speaker=" Kari  Nordmann"), Track(path="ola.mp3", speaker="Ola"))
    with open_tracks(tmp_path, WhisperPayload(tracks=both)) as opened:
        yield opened


def contexts(ctx: FakeContext, tracks: list[OpenTrack]) -> list[TrackContext]:
    return [TrackContext(ctx, track, tracks, "5e77") for track in tracks]  # type: ignore[arg-type]


def test_each_track_sees_its_own_finished_units(tracks: list[OpenTrack]) -> None:
    ctx = FakeContext()
    kari, ola = contexts(ctx, tracks)
    kari.checkpoint({"key": tracks[0].key("5e77"), "index": 0})
    ola.checkpoint({"key": tracks[1].key("5e77"), "index": 0})
    ola.checkpoint({"key": tracks[1].key("5e77"), "index": 1})

    assert [len(each.checkpoints()) for each in (kari, ola)] == [1, 2]
    kari.drop_checkpoints()
    assert len(ctx.rows) == 3  # Ola's are of use


def test_units_that_no_track_can_use_are_shown_and_dropped(tracks: list[OpenTrack]) -> None:
    ctx = FakeContext()
    ctx.checkpoint({"key": "another file's"})
    ctx.checkpoint("no unit")
    kari, _ = contexts(ctx, tracks)

    assert len(kari.checkpoints()) == 2
    kari.drop_checkpoints()
    assert ctx.rows == []


def test_same_bytes_in_two_tracks_are_two_tracks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"silence")
    both = (Track(path="a", speaker="Kari"), Track(path="b", speaker="Ola"))

    with open_tracks(tmp_path, WhisperPayload(tracks=both)) as opened:
        assert opened[0].sha256 == opened[1].sha256
        assert opened[0].key("5e77") != opened[1].key("5e77")


def test_progress_is_shared_by_size_and_says_whose_track_it_is(tracks: list[OpenTrack]) -> None:
    ctx = FakeContext()
    kari, ola = contexts(ctx, tracks)

    kari.progress(0.5, "transcribing 1:00 of 2:00")
    ola.progress(0.5)
    ola.progress(None, "reading")

    assert ctx.reports == [
        (0.375, "Kari Nordmann: transcribing 1:00 of 2:00"),
        (0.875, None),
        (None, "Ola: reading"),
    ]


def test_a_file_that_the_job_names_by_its_digest_is_taken_and_no_other(tmp_path: Path) -> None:
    for name in ("kari", "ola"):
        (tmp_path / f"{name}.mp3").write_bytes(name.encode())
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("kari", "ola")}

    def opened(payload: WhisperPayload) -> list[str]:
        with open_tracks(tmp_path, payload) as tracks:
            return [track.sha256 for track in tracks]

    def conversation(of_ola: str) -> WhisperPayload:
        tracks = (Track(path="kari.mp3", speaker="Kari"), Track(path="ola.mp3", speaker="Ola", sha256=of_ola))
        return WhisperPayload(tracks=tracks)

    assert opened(WhisperPayload(path="kari.mp3", sha256=digests["kari"])) == [digests["kari"]]
    assert opened(conversation(digests["ola"])) == [digests["kari"], digests["ola"]]
    for wrong in (WhisperPayload(path="ola.mp3", sha256=digests["kari"]), conversation(digests["kari"])):
        with pytest.raises(FileChangedError) as caught:
            opened(wrong)
        assert str(caught.value).startswith(
            f"'ola.mp3' is another file than the job names: expected sha256 {digests['kari']}, found {digests['ola']}. "
        )
