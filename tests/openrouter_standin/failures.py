"""Bodies of errors, in OpenRouter's shapes."""

from typing import Any

USER = "user_2standin"


def failure(
    code: int,
    message: str,
    error_type: str | None = None,
    *,
    availability: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """The ordinary body: an error with a code, a message and perhaps metadata."""
    told = {**({"error_type": error_type} if error_type else {}), **metadata}
    error: dict[str, Any] = {"code": code, "message": message, **({"metadata": told} if told else {})}
    if availability is not None:
        error["availability"] = availability
    return {"error": error, "user_id": USER}


def unauthorized() -> dict[str, Any]:
    return failure(401, "User not found.", "authentication")


def invalid_request(problems: list[str]) -> dict[str, Any]:
    return failure(400, "Input validation failed: " + "; ".join(problems)[:400], "invalid_request")


def model_not_found(model: str) -> dict[str, Any]:
    return failure(400, f"{model} is not a valid model ID", "model_not_found")


def constraint_filtered(model: str, reasons: list[str]) -> dict[str, Any]:
    """No endpoint is left: the variant of the body that tells about availability."""
    return failure(
        404,
        f"No endpoints found for {model} that match your data policy and routing requirements.",
        "constraint_filtered",
        availability={
            "code": "constraint_filtered",
            "retryable": False,
            "retry_after": None,
            "excluded_by": reasons,
            "fallback_models": ["openai/gpt-small"],
        },
    )


def too_long(context: int, prompt: int, output: int) -> dict[str, Any]:
    return failure(
        400,
        f"This endpoint's maximum context length is {context} tokens. However, you requested about "
        f"{prompt + output} tokens ({prompt} of text input, {output} in the output). Please reduce the length of "
        "either one, or use the context-compression plugin to compress your prompt automatically.",
        "context_length_exceeded",
    )


def too_dear(requested: int, affordable: int) -> dict[str, Any]:
    return failure(
        402,
        "This request requires more credits, or fewer max_tokens. "
        f"You requested up to {requested} tokens, but can only afford {affordable}. "
        "To increase, visit the credits page of your account and add more credits",
        "payment_required",
        limit_source="openrouter_credits",
    )


def not_found(what: str) -> dict[str, Any]:
    return failure(404, f"{what} not found", "not_found")
