"""What a job's progress says: how far it is, how fast it goes, and when it will be done."""

import time

from services.whisper.messages import UnitProgress

ALMOST_DONE = 0.99  # what is left is writing
# Before so much was done, speed is a guess.
LEAST_SHARE, LEAST_SECONDS = 0.05, 2.0


class Speedometer:
    """The speed of this run, from the first unit that it works on: reading up to it is quicker and tells nothing."""

    def __init__(self) -> None:
        self._from: float | None = None
        self._began = 0.0

    def begin(self, position_seconds: float) -> None:
        """A unit begins; the first one starts the clock."""
        if self._from is None:
            self._from, self._began = position_seconds, time.monotonic()

    def speed(self, message: UnitProgress) -> float | None:
        """Seconds of audio per second; None while too little was done."""
        if self._from is None or message.stage != "transcribing":
            return None
        spent, done = time.monotonic() - self._began, message.seconds - self._from
        total = message.total_seconds or 0.0
        return done / spent if spent >= LEAST_SECONDS and done > 0 and done >= LEAST_SHARE * total else None


def progress_of(message: UnitProgress, units: int = 0, speed: float | None = None) -> tuple[float, str]:
    """The share done and a note such as "transcribing 3:20 of 12:05, 1 unit done, 8.2x, 1:03 left".

    The container's length may be missing or wrong; then the note says what is known.
    """
    total = message.total_seconds or 0.0
    pace = [f"{units} {'unit' if units == 1 else 'units'} done"] if units else []
    if speed is not None:
        pace.append(f"{speed:.1f}x" if speed < 100 else f"{speed:.0f}x")
    if total <= message.seconds:
        note = f"{message.stage} {clock(message.seconds)}"
        return (ALMOST_DONE if total else 0.0), ", ".join([note, *pace])
    if speed is not None:
        pace.append(f"{clock((total - message.seconds) / speed)} left")
    share = min(message.seconds / total, ALMOST_DONE)
    return share, ", ".join([f"{message.stage} {clock(message.seconds)} of {clock(total)}", *pace])


def clock(time_seconds: float) -> str:
    """3:20, or 1:03:20."""
    minutes, second = divmod(int(time_seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
