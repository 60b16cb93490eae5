"""A stream of events becomes the answer that it would have been, however the network cuts it."""

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openrouter import components

from openrouter_client.stream import Collector, EventReader
from openrouter_client.verdicts import Kind, classify

USAGE = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "cost": 0.0001}


def chunk(content: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if content is None else {"role": "assistant", "content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "native_finish_reason": finish and finish.upper()}
    shared = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "a/b", "provider": "Google"}
    return {**shared, "system_fingerprint": None, "choices": [choice], **more}


def wire(*events: Any, end: str = "\n\n", done: bool = True) -> bytes:
    lines = [f"data: {event if isinstance(event, str) else json.dumps(event)}" for event in events]
    return "".join(line + end for line in [*lines, *(["data: [DONE]"] if done else [])]).encode()


def collect(*pieces: bytes) -> dict[str, Any]:
    collector = Collector()
    for piece in pieces:
        collector.feed(piece)
    return collector.end()


def text_of(body: dict[str, Any]) -> Any:
    return body["choices"][0]["message"]["content"]


HELLO = wire(chunk("Hei "), chunk("på «deg» 😀"), chunk("", "stop"), chunk() | {"choices": [], "usage": USAGE})


def test_a_stream_becomes_an_ordinary_completion() -> None:
    body = collect(HELLO)

    assert text_of(body) == "Hei på «deg» 😀"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["choices"][0]["native_finish_reason"] == "STOP"
    assert (body["id"], body["object"], body["provider"]) == ("gen-1", "chat.completion", "Google")
    assert body["usage"] == USAGE
    assert components.ChatResult.model_validate(body | {"system_fingerprint": None}).choices[0].finish_reason == "stop"
    assert classify(200, {}, body).kind is Kind.OK


@given(st.lists(st.integers(0, len(HELLO)), max_size=12))
@settings(deadline=None)
def test_any_cut_into_packets_gives_the_same_answer(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(HELLO)]

    assert collect(*(HELLO[a:b] for a, b in pairwise(bounds))) == collect(HELLO)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_every_line_end_at_every_packet_size(line_end: str, size: int) -> None:
    raw = HELLO.replace(b"\n", line_end.encode())

    assert collect(*(raw[at : at + size] for at in range(0, len(raw), size))) == collect(HELLO)


def test_comments_and_other_fields_are_no_content() -> None:
    raw = b": OPENROUTER PROCESSING\n\n" + b"event: message\nid: 7\nretry: 10\n" + HELLO.replace(b"data: {", b"data:{")

    assert collect(raw) == collect(HELLO)
    assert list(EventReader().feed(b": x\ndata:  two\ndata:blanks\n\n")) == [" two\nblanks"]


@pytest.mark.parametrize("cut", [1, 2, 3, 5])
def test_a_byte_order_mark_is_no_content(cut: int) -> None:
    raw = b"\xef\xbb\xbf" + HELLO

    assert collect(raw[:cut], raw[cut:]) == collect(HELLO)


def test_events_without_blank_lines_between_them_are_read() -> None:
    assert collect(HELLO.replace(b"\n\n", b"\n")) == collect(HELLO)


def test_an_event_over_several_lines_is_one() -> None:
    pretty = "".join(f"data: {line}\n" for line in json.dumps(chunk("Hei", "stop"), indent=1).splitlines())

    assert text_of(collect(pretty.encode() + b"\n")) == "Hei"


def test_nothing_follows_the_end() -> None:
    collector = Collector()
    collector.feed(HELLO)
    assert collector.is_done
    collector.feed(wire(chunk("more")))

    assert text_of(collector.end()) == "Hei på «deg» 😀"


def test_the_last_event_may_lack_its_line_end() -> None:
    assert text_of(collect(wire(chunk("Hei"), chunk("", "stop"), done=False).rstrip())) == "Hei"
    assert collect(HELLO.rstrip()) == collect(HELLO)


def test_a_stream_that_breaks_off_has_no_finish_reason() -> None:
    body = collect(wire(chunk("Half a"), done=False))

    assert body["choices"][0]["finish_reason"] is None
    assert classify(200, {}, body).kind is Kind.RETRY


def test_an_error_in_the_middle_stands_at_the_top() -> None:
    """The status was 200 long before; `code` may be a text there."""
    broken = chunk("", "error", error={"code": "server_error", "message": "Provider disconnected"})
    body = collect(wire(chunk('{"title": "half'), broken))
    verdict = classify(200, {}, body)

    assert body["error"]["message"] == "Provider disconnected"
    assert verdict.kind is Kind.RETRY
    assert "Provider disconnected" in verdict.message


def test_an_event_that_is_an_error_and_nothing_else() -> None:
    body = collect(b'event: error\ndata: {"error": {"code": 429, "message": "Slow down"}}\n\n')

    assert classify(200, {}, body).error_class == "rate_limited"


@pytest.mark.parametrize("damaged", ["{half", "Internal error", "[1]", '"text"', "[" * 100_000, "9" * 5000 + "x"])
def test_an_unreadable_event_is_a_failure_not_a_gap(damaged: str) -> None:
    """It may have been a piece of the text."""
    body = collect(wire(chunk("a"), damaged, chunk("b", "stop")))

    assert classify(200, {}, body).kind is Kind.RETRY


def test_deeper_than_an_answer_can_be_is_a_failure() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    body = collect(wire(chunk("a", "stop", usage={"x": deep})))

    assert classify(200, {}, body).kind is Kind.RETRY


def test_halves_of_a_letter_in_two_events_are_joined() -> None:
    body = collect(wire(chunk("a\ud83d"), chunk("\ude00b \ud83d c\x00"), chunk("", "stop")))

    assert text_of(body) == "a\U0001f600b \ufffd c\ufffd"
    assert json.dumps(body, ensure_ascii=False).encode()


def test_thoughts_refusals_and_parts_are_collected_apart() -> None:
    thought = chunk()
    thought["choices"][0]["delta"] = {"reasoning": "Hm", "reasoning_details": [{"type": "x"}]}
    refusal = chunk()
    refusal["choices"][0]["delta"] = {"refusal": "No"}
    parts = chunk([{"type": "text", "text": "A"}, {"type": "text", "text": "B"}])
    message = collect(wire(thought, thought, refusal, parts, chunk("C", "stop")))["choices"][0]["message"]

    assert message["reasoning"] == "HmHm"
    assert message["reasoning_details"] == [{"type": "x"}] * 2
    assert (message["refusal"], message["content"]) == ("No", "ABC")


def test_a_second_choice_is_not_mixed_in() -> None:
    other = chunk("WRONG")
    other["choices"][0]["index"] = 1

    assert text_of(collect(wire(chunk("Hei"), other, chunk("", "stop")))) == "Hei"


@pytest.mark.parametrize("choices", [None, 7, "x", [None], [7], [{}], [{"delta": None}], [{"delta": 7}]])
def test_members_of_any_type_are_survived(choices: Any) -> None:
    body = collect(wire(chunk("Hei"), chunk() | {"choices": choices}, chunk("", "stop")))

    assert text_of(body) == "Hei"


def test_nothing_at_all_is_an_empty_answer() -> None:
    assert text_of(collect()) is None
    assert classify(200, {}, collect(b": only a comment\n\n")).kind is Kind.EMPTY


def test_numbers_that_are_none_become_null() -> None:
    raw = (
        wire(chunk("Hei", "stop", usage=USAGE)).replace(b"0.0001", b"NaN").replace(b'"total_tokens": 13', b'"x": 1e999')
    )
    body = collect(raw)

    assert body["usage"]["cost"] is None
    assert body["usage"]["x"] is None


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_any_bytes_are_survived(raw: bytes) -> None:
    json.dumps(collect(raw), allow_nan=False)


def test_a_long_line_in_small_packets_costs_no_more_than_its_length() -> None:
    reader = EventReader()
    started = time.process_time()
    for _ in range(200_000):
        list(reader.feed(b"x" * 20))

    assert time.process_time() - started < 2
    assert list(reader.end()) == []
