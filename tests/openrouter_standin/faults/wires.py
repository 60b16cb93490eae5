"""Faults on the wire: the answer may be in order, its way is not."""

from typing import Any

from tests.openrouter_standin.fault import Fault
from tests.openrouter_standin.wire import Gate, Wire


def on_the_wire(name: str, **fields: Any) -> Fault:
    return Fault(name, wire=Wire(**fields))


def silent() -> Fault:
    """Takes the request and says nothing. The answer is made and billed all the same."""
    return on_the_wire("silence", starts_with="silence")


def silent_halfway(events: int = 4) -> Fault:
    return on_the_wire("silence halfway", events=events, end="silence")


def closes_unanswered() -> Fault:
    """Closes the connection without a byte."""
    return on_the_wire("closes unanswered", starts_with="close")


def stale_connection() -> Fault:
    """Closes a kept-alive connection as soon as a request comes in on it; a fresh one is answered."""
    return on_the_wire("stale connection", starts_with="close", only_if_reused=True)


def ends_early(events: int = 4) -> Fault:
    """The stream ends in order, without [DONE] and without a reason."""
    return on_the_wire("ends early", events=events, end="eof")


def breaks(events: int = 4) -> Fault:
    """The connection breaks in the middle of the stream."""
    return on_the_wire("breaks", events=events, end="reset")


def dripping(pause_seconds: float) -> Fault:
    return on_the_wire("slow drip", pause_seconds=pause_seconds)


def many_comments(count: int = 30, pause_seconds: float = 0) -> Fault:
    return on_the_wire("comments", comments=count, pause_seconds=pause_seconds)


def tight_lines() -> Fault:
    return on_the_wire("data without space", is_tight=True)


def split_characters(packet_bytes: int = 1) -> Fault:
    return on_the_wire("split characters", packet_bytes=packet_bytes)


def held(gate: Gate, at: str = "answer") -> Fault:
    """Waits at the gate: before the headers, after them (`answer`), or before the last event (`end`)."""
    return on_the_wire("held", gate=gate, gate_at=at)
