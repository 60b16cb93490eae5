"""How fast the engine works, and from that how long a call, or its silence, may last.

No fixed limits: what is generous for ten minutes of audio would kill three hours, or a large model on a slow machine.
"""

LEAST_SECONDS = 120.0
# Seconds of audio per second of work that nothing is expected to fall below, before anything was measured.
FIRST_SPEED = {"cpu": 0.5, "cuda": 5.0}
NEW_SHARE = 0.3  # of the newest unit in the moving average
PATIENCE = 3.0  # how many times longer than expected a file may take
SILENT_UNITS = 10.0  # how many mean units without a sign of life


class Pace:
    """The moving average over the units of all jobs of one engine."""

    def __init__(self, device: str = "cpu", unit_seconds: float = 300.0) -> None:
        self._first_speed = FIRST_SPEED.get(device, FIRST_SPEED["cpu"])
        self._unit_seconds = unit_seconds
        self._speed: float | None = None
        self._mean_unit: float | None = None

    def note(self, audio_seconds: float, work_seconds: float) -> None:
        """A unit is finished."""
        if audio_seconds <= 0 or work_seconds <= 0:
            return
        self._speed = _average(self._speed, audio_seconds / work_seconds)
        self._mean_unit = _average(self._mean_unit, work_seconds)

    def longest_call(self, audio_seconds: float | None) -> float | None:
        """Seconds for so much audio; None when it is not known how much there is."""
        if audio_seconds is None:
            return None
        slowest = min(self._first_speed, self._speed or self._first_speed)
        return LEAST_SECONDS + PATIENCE * audio_seconds / slowest

    def longest_silence(self) -> float:
        """Seconds without a segment or a finished unit."""
        if self._mean_unit is None:  # the first unit of a large model, and loading it
            return max(LEAST_SECONDS, self._unit_seconds / self._first_speed)
        return max(LEAST_SECONDS, SILENT_UNITS * self._mean_unit)


def _average(before: float | None, now: float) -> float:
    return now if before is None else before + NEW_SHARE * (now - before)
