"""POST /chat/completions: judge, route, answer, bill."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.openrouter_standin import failures
from tests.openrouter_standin.account import Generation
from tests.openrouter_standin.answers import CHARS_PER_TOKEN, Answer, ChatCall, count_tokens
from tests.openrouter_standin.catalogue import Endpoint, excluded_by, unsupported
from tests.openrouter_standin.contract import request_problems
from tests.openrouter_standin.wire import ClientGoneError, Delivery, Reply, Wire, event, json_reply

if TYPE_CHECKING:
    from tests.openrouter_standin.server import StandIn

COMPRESSED_UP_TO = 8_192  # endpoints this small have context compression on unless the request says no
Saying = Callable[[ChatCall], str | Answer]


def complete(standin: "StandIn", call: ChatCall, delivery: Delivery) -> None:
    """Answers one request, and settles its bill whatever becomes of the client."""
    reply, generation = _decide(standin, call, delivery)
    if generation is None:
        delivery.send(reply)
        return
    if reply.wire.is_broken:
        standin.account.settle(generation, is_whole=False)  # the worst case: the model goes on, nobody hears it
    try:
        delivery.send(reply, lambda: standin.account.settle(generation))
    except ClientGoneError:
        if call.is_stream:
            heard = reply.said[delivery.sent_events - 1] if delivery.sent_events else ""
            standin.account.settle(generation, said=heard)
        else:
            standin.account.settle(generation, is_whole=False)
        raise


def _decide(standin: "StandIn", call: ChatCall, delivery: Delivery) -> tuple[Reply, Generation | None]:
    if standin.key and call.headers.get("authorization") != f"Bearer {standin.key}":
        return json_reply(401, failures.unauthorized()), None
    if not standin.is_generic:
        if problems := request_problems(call.body):
            standin.contract_problems.extend(problems)
            return json_reply(400, failures.invalid_request(problems)), None
        if hit := standin.account.cached(call):
            return _reply(hit[0], hit[1], Wire()), hit[0]
    fault = standin.next_fault(call)
    if fault is not None and not fault.is_spared(call):
        if fault.wire.starts_with != "headers" and (call.is_reused_connection or not fault.wire.only_if_reused):
            return _never_answer(standin, call, fault.wire, delivery)
        if fault.status is not None:
            return fault.reply(call), None
    return _route(standin, call, fault)


def _never_answer(
    standin: "StandIn", call: ChatCall, wire: Wire, delivery: Delivery
) -> tuple[Reply, Generation | None]:
    """The request is taken and no byte comes back. Whoever only hung up has been billed meanwhile."""
    if wire.starts_with == "close":
        delivery.close()
        raise ClientGoneError
    _, generation = _route(standin, call, None)
    if generation is not None:
        standin.account.settle(generation, is_whole=False)
    delivery.be_silent()
    raise ClientGoneError


def _route(standin: "StandIn", call: ChatCall, fault: Any) -> tuple[Reply, Generation | None]:
    """The first model asked for that can answer; else why the last one cannot."""
    refusal = json_reply(400, failures.invalid_request(["model: none was named"]))
    for place, model in enumerate(call.models):
        if fault is not None and fault.hits_first_model and place == 0 and len(call.models) > 1:
            continue  # is_spared has let the fault pass to the fallbacks
        endpoint, problem = _choose(standin, call, model)
        if endpoint is None:
            refusal = problem or refusal
            continue
        return _run(standin, call, fault, model, endpoint)
    return refusal, None


def _choose(standin: "StandIn", call: ChatCall, model: str) -> tuple[Endpoint | None, Reply | None]:
    if standin.is_generic:
        return _fitting(call, standin.models[0].endpoints[0], standin)
    known = {one.id: one for one in standin.models}
    if model not in known:
        return None, json_reply(400, failures.model_not_found(model))
    excluded = {one: excluded_by(call, one) for one in known[model].endpoints}
    fit = [one for one, reasons in excluded.items() if not reasons]
    if not fit:
        reasons = sorted({reason for reasons in excluded.values() for reason in reasons})
        return None, json_reply(404, failures.constraint_filtered(model, reasons))
    return _fitting(call, fit[0], standin)


def _fitting(call: ChatCall, endpoint: Endpoint, standin: "StandIn") -> tuple[Endpoint | None, Reply | None]:
    """Does the prompt fit, and is there money for the longest answer?"""
    prompt = count_tokens(call.text)
    output = call.max_tokens or endpoint.max_completion_tokens
    if prompt + (call.max_tokens or 0) > endpoint.context_tokens:
        if standin.is_generic and not standin.cuts_silently:
            return None, json_reply(400, _exceeded(prompt, endpoint.context_tokens))
        if not standin.is_generic and not _compresses(call, endpoint):
            return None, json_reply(400, failures.too_long(endpoint.context_tokens, prompt, call.max_tokens or 0))
    spare = standin.account.balance - endpoint.cost(prompt, 0)
    if not standin.is_generic and endpoint.cost(prompt, output) > standin.account.balance:
        per_token = endpoint.cost(0, 1) - endpoint.cost(0, 0)
        affordable = max(0, int(spare / per_token)) if per_token else 0
        return None, json_reply(402, failures.too_dear(output, affordable))
    return endpoint, None


def _compresses(call: ChatCall, endpoint: Endpoint) -> bool:
    """Cuts the middle of the prompt without a word, unless the request forbids it."""
    told = [one for one in call.body.get("plugins") or () if one.get("id") == "context-compression"]
    if told:
        return bool(told[0].get("enabled", True))
    return endpoint.context_tokens <= COMPRESSED_UP_TO


def _run(standin: "StandIn", call: ChatCall, fault: Any, model: str, endpoint: Endpoint) -> tuple[Reply, Generation]:
    heard = call
    if "response_format" in unsupported(call, endpoint) and not standin.is_generic:
        heard = replace(call, body={name: value for name, value in call.body.items() if name != "response_format"})
    said = standin.say(heard)
    answer = said if isinstance(said, Answer) else Answer(said)
    answer = _limited(answer, call.max_tokens or endpoint.max_completion_tokens)
    if fault is not None and fault.change is not None:
        answer = fault.change(answer)
    answer = replace(answer, model=answer.model or model, provider=answer.provider or endpoint.provider)
    prompt = min(count_tokens(call.text), endpoint.context_tokens)
    generation = standin.account.open(call, endpoint, answer, prompt)
    wire = fault.wire if fault is not None else Wire()
    headers = {} if standin.is_generic else standin.account.miss_headers(call)
    return _reply(generation, headers, wire, is_generic=standin.is_generic), generation


def _limited(answer: Answer, most: int) -> Answer:
    """Cut where the budget ends."""
    if answer.tokens() <= most or not isinstance(answer.content, str) or answer.finish_reason == "length":
        return answer
    return replace(answer, content=answer.content[: int(most * CHARS_PER_TOKEN)], finish_reason="length")


def _reply(generation: Generation, headers: dict[str, str], wire: Wire, *, is_generic: bool = False) -> Reply:
    shape = _Shape(generation, is_generic)
    if not is_generic:
        headers = {**headers, "X-Generation-Id": generation.id}
    if not generation.call.is_stream:
        return json_reply(200, shape.whole(), headers, wire)
    events, said = shape.events(wire)
    kind = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    return Reply(200, {**kind, **headers}, events=events, said=said, wire=wire)


class _Shape:
    """The JSON of one generation, as one object or as the chunks of a stream."""

    def __init__(self, generation: Generation, is_generic: bool) -> None:
        self.generation = generation
        self.answer = generation.answer
        self.is_generic = is_generic

    def whole(self) -> dict[str, Any]:
        answer = self.answer
        message = {"role": "assistant", "content": answer.content, "refusal": answer.refusal}
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": answer.finish_reason,
            "message": message | ({"reasoning": answer.reasoning} if answer.reasoning else {}),
            "logprobs": None,
        }
        if not self.is_generic:
            choice["native_finish_reason"] = answer.native_finish_reason or answer.finish_reason
        if answer.error:
            choice["error"] = dict(answer.error)
        choices = {"one": [choice], "none": [], "null": None}[answer.choices]
        return self._frame("chat.completion") | {"choices": choices} | self._usage()

    def events(self, wire: Wire) -> tuple[list[bytes], list[str]]:
        """The events, and what the client has heard after each."""
        answer = self.answer
        chunks: list[tuple[dict[str, Any] | str, str]] = []
        heard = ""
        if answer.choices == "one":
            chunks.append((self._chunk({"role": "assistant", "content": ""}), ""))
            if answer.reasoning:
                chunks.append((self._chunk({"reasoning": answer.reasoning}), ""))
            for piece in answer.pieces():
                heard += piece
                chunks.append((self._chunk({"content": piece}), heard))
            if answer.refusal:
                chunks.append((self._chunk({"refusal": answer.refusal}), heard))
            chunks.append((self._last(), heard))
        if answer.usage is not None:
            chunks.append((self._frame("chat.completion.chunk") | {"choices": []} | self._usage(), heard))
        chunks.append(("[DONE]", heard))
        comments = [b": OPENROUTER PROCESSING\n\n"] * (0 if self.is_generic else wire.comments)
        events = [event(chunk, is_tight=wire.is_tight) for chunk, _ in chunks]
        return comments + events, [""] * len(comments) + [said for _, said in chunks]

    def _last(self) -> dict[str, Any]:
        chunk = self._chunk({"content": ""}, self.answer.finish_reason)
        if self.answer.error:
            code = self.answer.error_code_in_stream
            chunk["error"] = {**self.answer.error, **({"code": code} if code is not None else {})}
        return chunk

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        if not self.is_generic:
            choice["native_finish_reason"] = (self.answer.native_finish_reason or finish) if finish else None
        return self._frame("chat.completion.chunk") | {"choices": [choice]}

    def _frame(self, kind: str) -> dict[str, Any]:
        id_ = self.generation.id.replace("gen-", "chatcmpl-" if self.is_generic else "gen-")
        frame: dict[str, Any] = {"id": id_, "object": kind, "created": int(time.time()), "model": self.answer.model}
        if self.is_generic:
            return frame
        frame["provider"] = self.answer.provider
        return frame | ({"system_fingerprint": None} if kind == "chat.completion" else {})

    def _usage(self) -> dict[str, Any]:
        usage = self.generation.usage()
        if usage is None:
            return {"usage": None}
        if self.is_generic:
            return {"usage": {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}}
        return {"usage": usage}


def _exceeded(prompt: int, context: int) -> dict[str, Any]:
    """What llama.cpp's server says."""
    message = f"the request exceeds the available context size ({context} tokens), try increasing it"
    kind = "exceed_context_size_error"
    return {"error": {"code": 400, "message": message, "type": kind, "n_prompt_tokens": prompt, "n_ctx": context}}
