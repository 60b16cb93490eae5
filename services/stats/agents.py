"""Who asked, by the User-Agent: app, kind of app, device, and whether a person can be behind it (R30 to R34).

The project's own list is agents.toml; `opawg.py` reads the list of the Open Podcast Analytics Working Group in its
place. Either way the first entry that fits wins.
"""

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN_LIST = Path(__file__).with_name("agents.toml")
BOT, WATCH, NO_AGENT = "bot", "apple_watch", "no_ua"
UNKNOWN = "unknown"

_HASHED = re.compile(r"[0-9a-f]{8}", re.ASCII)
_BOT_WORDS = ("bot", "crawler", "spider")
_SUBSCRIBERS = re.compile(r"(?<!\d)(\d{1,9})\s+(?:subscribers?|readers?|users)\b", re.IGNORECASE | re.ASCII)
# (R32) the daemon that fetches for a watch what its phone fetches as well
_WATCH_DUPLICATES = ("^atc/", "^(null)/(null) watchos")
_LONGEST_LOOKED_AT = 1000  # characters; what tells an app stands early


@dataclass(frozen=True)
class Verdict:
    """What a list says of a user agent. `kind`: bot, app, library, browser, unknown."""

    name: str
    kind: str
    device: str = ""
    is_bot: bool = False


@dataclass(frozen=True, eq=False)
class Agent:
    """A user agent; compared by identity, since a book holds each text once."""

    key: bytes  # what the listener's hash takes of it: the whole text (R22)
    text: str
    name: str
    kind: str
    device: str
    exclusion: str | None  # bot, apple_watch, no_ua (R8: blank), or None when it counts
    is_hashed: bool  # a filter of Caddy has hashed the header


Classifier = Callable[[str], Verdict]


class AgentBook(dict[str, Agent]):
    """User agents by their text, each classified once as long as it is remembered."""

    MOST = 20_000

    def __init__(self, classify: Classifier) -> None:
        super().__init__()
        self._classify = classify

    def __missing__(self, text: str) -> Agent:
        agent = self[text] = agent_of(text, self._classify)
        return agent

    def forget(self) -> None:
        """Between batches, when there are many."""
        if len(self) > self.MOST:
            self.clear()


def agent_of(text: str, classify: Classifier) -> Agent:
    """What a User-Agent header says."""
    looked_at = text[:_LONGEST_LOOKED_AT]
    is_hashed = _HASHED.fullmatch(text) is not None
    verdict = classify(looked_at)
    if not text or text.isspace():
        exclusion: str | None = NO_AGENT
    else:
        exclusion = WATCH if is_watch_duplicate(looked_at) else BOT if verdict.is_bot else None
    return Agent(
        key=text.encode("utf-8", "surrogatepass"),
        text=text,
        name=verdict.name,
        kind=verdict.kind,
        device=verdict.device,
        exclusion=exclusion,
        is_hashed=is_hashed,
    )


def is_watch_duplicate(text: str) -> bool:
    """R32: what the watch's own fetcher sends. Players on a watch, and AppleCoreMedia there, are not meant."""
    lowered = text.lower()
    return "watchos" in lowered and any(_fits(token, lowered) for token in _WATCH_DUPLICATES)


def looks_like_bot(text: str, more_words: Iterable[str] = ()) -> bool:
    """R30: for what no list knows."""
    lowered = text.lower()
    return any(word in lowered for word in (*_BOT_WORDS, *more_words))


def subscribers_of(text: str) -> int:
    """How many subscribers the fetcher of a feed says it has."""
    found = _SUBSCRIBERS.search(text[:_LONGEST_LOOKED_AT])
    return int(found[1]) if found else 0


class OwnList:
    """The project's own list."""

    def __init__(self, path: Path = OWN_LIST) -> None:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        self.version = str(content["version"])
        self._bot_words: list[str] = content["bot_words"]
        groups = (
            ("bots", "bot", True),
            ("apps", "app", False),
            ("automatic_libraries", "library", True),
            ("libraries", "library", False),
            ("browsers", "browser", False),
        )
        self._entries: list[tuple[str, str, bool, tuple[str, ...]]] = [
            (name, kind, is_bot, tuple(tokens))
            for group, kind, is_bot in groups
            for name, tokens in content[group].items()
        ]
        self._devices: list[tuple[str, tuple[str, ...]]] = [
            (name, tuple(tokens)) for name, tokens in content["devices"].items()
        ]

    def __call__(self, text: str) -> Verdict:
        lowered = text.lower()
        for name, kind, is_bot, tokens in self._entries:
            if any(_fits(token, lowered) for token in tokens):
                return Verdict(name, kind, "" if is_bot else self._device(lowered), is_bot)
        return Verdict("", UNKNOWN, self._device(lowered), looks_like_bot(text, self._bot_words))

    def _device(self, lowered: str) -> str:
        for name, tokens in self._devices:
            if any(_fits(token, lowered) for token in tokens):
                return name
        return ""


def _fits(token: str, lowered: str) -> bool:
    if token.endswith("$"):
        return lowered == token[1:-1] if token.startswith("^") else lowered.endswith(token[:-1])
    return lowered.startswith(token[1:]) if token.startswith("^") else token in lowered
