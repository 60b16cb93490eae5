"""Answers of a server, as short as a test needs them, and their judgement at a fixed time."""

from datetime import UTC, datetime
from typing import Any

from openrouter_client.verdicts import Verdict, classify

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
HOUR = 3600.0


def judge(status: int, body: object = None, headers: dict[str, str] | None = None) -> Verdict:
    return classify(status, headers or {}, body, now=NOW)


def failure(code: Any, error_type: str | None = None, message: str = "It failed", **more: Any) -> dict[str, Any]:
    metadata = ({"error_type": error_type} if error_type else {}) | more
    return {"error": {"code": code, "message": message, "metadata": metadata or None}, "user_id": "user_1"}


def answer(content: Any = '{"a":1}', finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {"id": "gen-1", "model": "a/b", "provider": "Google", "choices": [choice | more], "usage": usage}


def unavailable(code: str, retryable: bool | None, **more: Any) -> dict[str, Any]:
    told = {"code": code, "retryable": retryable} | more
    return {"error": {"message": "No provider", "error_type": code, "http_status": 404, "availability": told}}
