"""What a person reads about an error, and what they can do."""

from openrouter_client.error_body import AnswerError

GIVE_A_KEY = "give a valid key with `make key`; without the stack, set OPENROUTER_API_KEY and start the worker again"
_SETTING_BY_FILTER = {
    "data_collection": "OPENROUTER_DATA_COLLECTION",
    "data": "OPENROUTER_DATA_COLLECTION",
    "zdr": "OPENROUTER_ZDR",
    "price": "OPENROUTER_MAX_PRICE_PROMPT and OPENROUTER_MAX_PRICE_COMPLETION",
    "parameters": "OPENROUTER_MODEL (this one takes no JSON schema)",
    "response_format": "OPENROUTER_MODEL (this one takes no JSON schema)",
    "structured": "OPENROUTER_MODEL (this one takes no JSON schema)",
}
_BY_CLASS = {
    "auth": GIVE_A_KEY,
    "credits": "add credit at the provider, or raise the key's limit",
    "config": "the request does not fit the server: look at OPENROUTER_BASE_URL, OPENROUTER_PROFILE, OPENROUTER_MODEL",
    "model_unavailable": "set OPENROUTER_MODEL to a model that is offered",
    "policy_filtered": "loosen OPENROUTER_DATA_COLLECTION, OPENROUTER_ZDR or the price limits, or choose another model",
    "refused": "the provider's moderation refused the text; another model may not",
    "too_long": "send less text, or choose a model with a larger context",
}


def sentence(error: AnswerError, code: int) -> str:
    """What failed, by whom and in whose words."""
    head = ", ".join(part for part in (f"HTTP {code}", *error.types[:1], error.provider) if part)
    body = error.message or "no message"
    raw = error.raw if error.raw and error.raw not in body else ""
    previous = error.metadata.get("previous_errors")
    tries = f"; after {len(previous)} other tries" if isinstance(previous, list) and previous else ""
    reasons = ", ".join(error.names("reasons") or error.names("patterns"))
    parts = (f"{head}: {body}", f"the provider says: {raw}" if raw else "", f"reasons: {reasons}" if reasons else "")
    return "; ".join(part for part in parts if part) + tries


def advice_for(error: AnswerError, error_class: str, code: int) -> str | None:
    """The next step for a person, or None where waiting is all there is to do."""
    steps = [_BY_CLASS[error_class]] if error_class in _BY_CLASS else []
    excluded = error.names("excluded_by")
    if excluded:
        steps = [_excluded(excluded)]
    if suggested := error.names("fallback_models"):
        steps.append(f"offered instead: {', '.join(suggested)}")
    hint = error.metadata.get("remedy_hint")
    if isinstance(hint, str) and hint:
        steps.append(hint[:300])
    if code == 404 and not error.fields:
        steps.append("the server does not know this address")
    return "; ".join(steps) or None


def _excluded(filters: list[str]) -> str:
    named = {setting for name in filters for word, setting in _SETTING_BY_FILTER.items() if word in name.lower()} or {
        "the filters"
    }
    return f"no provider is left after {', '.join(filters)}: change {', '.join(sorted(named))}"
