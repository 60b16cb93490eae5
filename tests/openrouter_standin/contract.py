"""What the official SDK's models say about a request or an answer.

The models alone let unknown keys pass and drop them, so a request also has to come back equal when it is written out
again; lengths and ranges, which they do not know, are checked here.
"""

import re
import warnings
from collections.abc import Mapping
from typing import Any

from openrouter import components, errors, operations
from pydantic import BaseModel, ValidationError

SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
EFFORTS = {None, "max", "xhigh", "high", "medium", "low", "minimal", "none"}
COLLECTION = {None, "deny", "allow"}
ERROR_MODELS: dict[int, type[BaseModel]] = {
    400: errors.BadRequestResponseErrorData,
    401: errors.UnauthorizedResponseErrorData,
    402: errors.PaymentRequiredResponseErrorData,
    403: errors.ForbiddenResponseErrorData,
    404: errors.NotFoundResponseErrorData,
    408: errors.RequestTimeoutResponseErrorData,
    409: errors.ConflictResponseErrorData,
    410: errors.GoneResponseErrorData,
    413: errors.PayloadTooLargeResponseErrorData,
    422: errors.UnprocessableEntityResponseErrorData,
    429: errors.TooManyRequestsResponseErrorData,
    499: errors.ClientClosedRequestResponseErrorData,
    500: errors.InternalServerResponseErrorData,
    502: errors.BadGatewayResponseErrorData,
    503: errors.ServiceUnavailableResponseErrorData,
    504: errors.GatewayTimeoutResponseErrorData,
    524: errors.EdgeNetworkTimeoutResponseErrorData,
    529: errors.ProviderOverloadedResponseErrorData,
}
ANSWER_MODELS: dict[str, type[BaseModel]] = {
    "chat": components.ChatResult,
    "chunk": components.ChatStreamChunk,
    "models": components.ModelsListResponse,
    "endpoints": operations.ListEndpointsResponse,
    "key": operations.GetCurrentKeyResponse,
    "generation": components.GenerationResponse,
}
# On the wire or in the service's own pages, but in no model of the SDK.
KNOWN_BESIDES = {"provider", "native_finish_reason", "availability"}


def request_problems(body: object) -> list[str]:
    """What is wrong with a chat request; empty when OpenRouter would take every part of it."""
    if not isinstance(body, dict):
        return ["the body is no object"]
    try:
        model = components.ChatRequest.model_validate(body)
    except ValidationError as error:
        return _described(error)
    return [*_lost(body, written(model), ""), *_out_of_range(body)]


def answer_problems(kind: str, body: object) -> list[str]:
    """What is wrong with an answer of that kind (see ANSWER_MODELS), or with an error body (kind: its status)."""
    model = ERROR_MODELS[int(kind)] if kind.isdigit() else ANSWER_MODELS[kind]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # GET /key still sends its old rate_limit
            read = model.model_validate(body)
    except ValidationError as error:
        return _described(error)
    return [lost for lost in _lost(body, written(read), "") if lost.rsplit(".", 1)[-1] not in KNOWN_BESIDES]


def written(model: BaseModel) -> Any:
    return model.model_dump(by_alias=True, exclude_unset=True, mode="json")


def _described(error: ValidationError) -> list[str]:
    return [f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors()]


def _lost(given: object, kept: object, path: str) -> list[str]:
    """Paths of what the models dropped or changed."""
    if isinstance(given, Mapping) and isinstance(kept, Mapping):
        lost = [f"{path}.{key}" for key in given if key not in kept]
        return lost + [
            deeper for key in given if key in kept for deeper in _lost(given[key], kept[key], f"{path}.{key}")
        ]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [
            deeper for i, pair in enumerate(zip(given, kept, strict=True)) for deeper in _lost(*pair, f"{path}[{i}]")
        ]
    return [] if given == kept else [path or "the whole"]


def _out_of_range(body: Mapping[str, Any]) -> list[str]:
    provider = body.get("provider") or {}
    reasoning = body.get("reasoning") or {}
    schema = (body.get("response_format") or {}).get("json_schema")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    checks = {
        "messages: at least one": bool(body["messages"]),
        "temperature: 0 to 2": 0 <= (body.get("temperature") or 0) <= 2,
        "max_completion_tokens: at least 1": limit is None or limit >= 1,
        "session_id: at most 256 characters": len(body.get("session_id") or "") <= 256,
        "response_format.json_schema.name": schema is None or bool(SCHEMA_NAME.fullmatch(schema["name"])),
        "reasoning.effort: unknown": reasoning.get("effort") in EFFORTS,
        "provider.data_collection: deny or allow": provider.get("data_collection") in COLLECTION,
        "provider.max_price: decimal strings": all(
            isinstance(price, str) for price in (provider.get("max_price") or {}).values()
        ),
    }
    return [name for name, holds in checks.items() if not holds]
