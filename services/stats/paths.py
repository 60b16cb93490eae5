"""From a request's URI to the episode, the feed or neither (R10, R11).

One file has many spellings: a query, doubled slashes, dots, percent signs, the absolute form. All become one path,
decoded once, as the server does.
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import unquote

EXTENSIONS = frozenset((".mp3", ".m4a", ".m4b", ".mp4", ".aac", ".ogg", ".opus", ".oga", ".flac", ".wav"))
LONGEST_PATH = 1024  # characters, as everywhere in this system
_UNUSABLE = frozenset(map(chr, range(32))) | {"\x7f", "\ufffd"}


class Kind(Enum):
    """What a path leads to."""

    EPISODE = auto()
    FEED = auto()
    OTHER = auto()


@dataclass(frozen=True)
class Target:
    """What a request asked for; `name` is the episode's or feed's path, `show` the show it belongs to."""

    kind: Kind
    show: str = ""
    name: str = ""


NOTHING = Target(Kind.OTHER)


@dataclass(frozen=True)
class Layout:
    """Where the media of a log source lie on its sites."""

    show: str
    media_prefix: str = "/"
    feed_paths: frozenset[str] = frozenset()
    extensions: frozenset[str] = EXTENSIONS
    shows_by_folder: bool = False  # the first folder below the prefix names the show
    hosts: frozenset[str] = field(default_factory=frozenset)  # empty: all

    def target_of(self, path: str) -> Target:
        """What a path without query leads to."""
        if len(path) > 3 * LONGEST_PATH:
            return NOTHING
        clean = normal_path(path)
        if clean in self.feed_paths:
            return Target(Kind.FEED, self.show, clean)
        name = self._below_prefix(clean)
        dot = name.rfind(".")
        if dot < 0 or name[dot:].lower() not in self.extensions or len(name) > LONGEST_PATH or _UNUSABLE & set(name):
            return NOTHING
        folder, slash, _ = name.partition("/")
        return Target(Kind.EPISODE, folder if self.shows_by_folder and slash else self.show, name)

    def serves(self, host: str) -> bool:
        """Whether a request's Host is one of this source's."""
        return not self.hosts or bare_host(host) in self.hosts

    def _below_prefix(self, path: str) -> str:
        prefix = self.media_prefix.rstrip("/") + "/"
        return path[len(prefix) :] if path.startswith(prefix) else ""


def normal_path(uri: str) -> str:
    """The path of a URI: absolute form, query and fragment gone, percent-decoded once, slashes and dots resolved."""
    path = uri.partition("?")[0].partition("#")[0]
    if not path.startswith("/"):
        _, scheme, rest = path.partition("://")
        path = "/" + rest.partition("/")[2] if scheme else "/" + path
    parts: list[str] = []
    for part in unquote(path, errors="replace").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def bare_host(host: str) -> str:
    """A host without its port, in small letters; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() and not name.endswith(":") else host).lower().rstrip(".")


def host_of_referrer(referrer: str) -> str:
    """The host of a Referer, the only part of it that is kept; empty when there is none."""
    _, scheme, rest = referrer.partition("://")
    if not scheme:
        return ""
    host = bare_host(rest.partition("/")[0].partition("?")[0].rpartition("@")[2])
    is_plain = 0 < len(host) <= 253 and host.isascii() and all(c.isalnum() or c in "-._" for c in host)
    # A bare address would say where somebody's own server stands.
    return host if is_plain and not host.replace(".", "").isdigit() else ""
