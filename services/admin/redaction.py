"""The rule of what is hidden, where pages, API and deliveries look for it. It is the queue's own."""

from sidelinja_jobs.redaction import MASK, is_secret_name, redact_json, redact_text, redact_value

__all__ = ["MASK", "is_secret_name", "redact_json", "redact_text", "redact_value"]
