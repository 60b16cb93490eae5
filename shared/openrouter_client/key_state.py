"""What the server says of the key: whether it works, and what it may still spend."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from openrouter_client import waits
from openrouter_client.usage import amount
from openrouter_client.verdicts import NO_CREDIT_SECONDS, Kind, Verdict


@dataclass(frozen=True)
class KeyState:
    """`verdict` is OK when the key can be used. Money is USD."""

    verdict: Verdict
    limit_remaining: Decimal | None = None  # None: no limit
    resets_at: datetime | None = None  # when the limit begins anew
    usage_daily: Decimal | None = None
    expires_at: str | None = None
    is_free_tier: bool = False

    @property
    def is_usable(self) -> bool:
        return self.verdict.kind is Kind.OK


def key_state_of(data: Mapping[str, Any], now: datetime) -> KeyState:
    """The state from the `data` of GET /key."""
    remaining = amount(data.get("limit_remaining"))
    period = data.get("limit_reset")
    resets_at = waits.next_reset(period if isinstance(period, str) else None, now)
    expires_at = data.get("expires_at")
    return KeyState(
        verdict=Verdict(Kind.OK) if remaining is None or remaining > 0 else _spent(remaining, resets_at, now),
        limit_remaining=remaining,
        resets_at=resets_at,
        usage_daily=amount(data.get("usage_daily")),
        expires_at=expires_at if isinstance(expires_at, str) else None,
        is_free_tier=data.get("is_free_tier") is True,
    )


def _spent(remaining: Decimal, resets_at: datetime | None, now: datetime) -> Verdict:
    wait = (resets_at - now).total_seconds() if resets_at else NO_CREDIT_SECONDS
    return Verdict(
        Kind.PAUSE,
        "credits",
        f"the key's limit is spent: {remaining:f} USD remain" + (f", until {resets_at:%Y-%m-%d}" if resets_at else ""),
        wait_seconds=min(wait, waits.LONGEST_HINT_SECONDS),
        advice="raise the key's limit at the provider, or wait",
        is_billed=False,
    )
