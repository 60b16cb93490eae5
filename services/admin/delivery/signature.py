"""Signatures of webhooks, as Standard Webhooks 1.0 has them: HMAC-SHA256 of `id.timestamp.body`."""

import base64
import binascii
import hashlib
import hmac

PREFIX = "whsec_"
SHORTEST_KEY, LONGEST_KEY = 24, 64  # bytes, by the specification


def signing_key(secret: str) -> bytes:
    """The key in a secret `whsec_` + base64.

    Raises:
        ValueError: it is none; the message does not repeat it.
    """
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise ValueError(f"expected {PREFIX} and base64 of {SHORTEST_KEY} to {LONGEST_KEY} bytes")
    return key


def signature(keys: list[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The header's value: one signature for each key, so that a receiver may know the old or the new one."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digests = (hmac.digest(key, signed, hashlib.sha256) for key in keys)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
