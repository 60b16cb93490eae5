"""Passwords as scrypt hashes: `scrypt$N$r$p$salt$hash`, N as a power of two, salt and hash in base64."""

import base64
import hashlib
import hmac
import secrets

# One of the settings that OWASP's cheat sheet on password storage holds equal; this one needs 16 MiB. Half a second.
LOG2_N, R, P = 14, 8, 5
SALT_BYTES = 16
LONGEST = 1024  # characters: hashing cannot be made slow by a long one


def hash_password(password: str) -> str:
    """A new hash, with a salt of its own."""
    salt = secrets.token_bytes(SALT_BYTES)
    return "$".join(("scrypt", str(LOG2_N), str(R), str(P), _text(salt), _text(_scrypt(password, salt, LOG2_N, R, P))))


def verifies(password: str, hashed: str | None) -> bool:
    """Does the password belong to the hash? Takes as long where there is none, so that nobody learns names by time."""
    wanted = hashed or _NOBODY
    try:
        scheme, log2_n, r, p, salt, key = wanted.split("$")
        found = _scrypt(password, base64.b64decode(salt), int(log2_n), int(r), int(p))
    except ValueError:
        return False
    return scheme == "scrypt" and hmac.compare_digest(found, base64.b64decode(key)) and hashed is not None


def _scrypt(password: str, salt: bytes, log2_n: int, r: int, p: int) -> bytes:
    memory = 128 * r * (2**log2_n + p + 2)
    secret = password[:LONGEST].encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=2**log2_n, r=r, p=p, maxmem=memory + 1024, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_NOBODY = "$".join(("scrypt", str(LOG2_N), str(R), str(P), _text(bytes(SALT_BYTES)), _text(bytes(32))))
