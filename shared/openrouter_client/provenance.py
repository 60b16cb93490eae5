"""Where a result is from: what a service's results say of the answers that they are made of."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from openrouter_client.asking import Answer

Tokens = Literal["prompt", "completion", "reasoning", "cached"]


def provenance(
    answers: Sequence[Answer], *, prompt_version: str, model: str, tokens: Sequence[Tokens], **plan: Any
) -> dict[str, Any]:
    """Models, calls, tokens and cost in USD of all answers together.

    `model` is the one that was asked for, `plan` what the service says of its way of asking.
    """
    return {
        "prompt_version": prompt_version,
        "model_requested": model,
        "model_used": _each_once([answer.model for answer in answers]),
        "provider": _each_once([answer.provider for answer in answers]),
        "generation_ids": [answer.generation_id for answer in answers if answer.generation_id],
        **plan,
        "calls": len(answers),
        "reused_answers": sum(answer.is_reused for answer in answers),
        "tokens": {name: sum(getattr(answer.usage, f"{name}_tokens") for answer in answers) for name in tokens},
        "cost_usd": f"{sum((answer.cost_usd for answer in answers), Decimal(0)):f}",
        "cost_source": _each_once([str(answer.cost_source) for answer in answers]),
    }


def _each_once(values: Sequence[str | None]) -> str | None:
    return ", ".join(dict.fromkeys(value for value in values if value)) or None
