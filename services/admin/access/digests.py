"""What the database knows of the tokens of sessions and programs. They are random, so a fast hash is enough."""

import hashlib


def digest(token: str) -> bytes:
    """The SHA-256 of a token; also of what is none, such as half of a character."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
