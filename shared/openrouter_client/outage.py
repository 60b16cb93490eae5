"""What a job does that the model did not answer, though nobody can have paid for it.

It comes back later, and longer later each time, for the queue bounds how often: it may be this one question that the
model cannot answer. Once several questions in a row had no answer, the model is away for all. Then jobs stand in line
(db/init/0029_waiting_in_line.sql): every half minute one of them asks, uncounted, and the first answer makes all due.
"""

import time
from dataclasses import replace

from openrouter_client.ledger import Ledger
from openrouter_client.outcomes import least_wait
from openrouter_client.verdicts import ANSWERED, Kind, Verdict

OUTAGE_SECONDS = 30.0  # until a server is asked again that was away, or refused for now
LONGEST_TURN_SECONDS = 600.0  # a server that names a longer wait speaks of a quota, not of an outage
OPENS_LINE = 3  # questions in a row without an answer
LATELY_SECONDS = 300.0  # a process that has not asked for longer knows nothing of how things are


class Outage:
    """How many questions in a row had no answer (`unanswered`), in all runs of this process. Used by one thread."""

    def __init__(self) -> None:
        self.unanswered = 0
        self._asked_at = 0.0

    def unanswered_lately(self) -> int:
        """The same, or 0 where nothing was asked lately: others may have been answered."""
        return self.unanswered if time.monotonic() - self._asked_at < LATELY_SECONDS else 0

    def note(self, verdict: Verdict, ledger: Ledger) -> None:
        """What a question brought that was sent."""
        self._asked_at = time.monotonic()
        if verdict.kind in ANSWERED:
            self.unanswered = 0
            ledger.end_line()  # also where it was another process that had no answers
        elif verdict.kind in (Kind.RETRY, Kind.COME_BACK):
            self.unanswered += 1

    def patient(self, verdict: Verdict, ledger: Ledger, postponements: int) -> Verdict:
        """The same, or in place of a failure that nobody paid for: come back later, after a while or at a turn in line.

        `postponements`: how often the job has come back, turns not counted.
        """
        wait = verdict.wait_seconds or 0.0
        if verdict.kind is Kind.RETRY and verdict.is_billed is False:
            wait = max(wait, OUTAGE_SECONDS)
        elif verdict.kind is not Kind.COME_BACK:
            return verdict
        turn = None
        if wait <= LONGEST_TURN_SECONDS:
            turn = ledger.take_turn(max(wait, OUTAGE_SECONDS), opens=self.unanswered >= OPENS_LINE)
        return replace(verdict, kind=Kind.COME_BACK, wait_seconds=max(wait, least_wait(postponements)), turn=turn)
