"""The windows of a batch as columns for the statement that writes them.

No address and no user agent leaves the process: keyed hashes stand in their place. Columns are array literals, which
PostgreSQL reads faster than psycopg would write lists, and each is made in one go: a batch is larger than the
processor's cache, so what walks over its windows costs more than what it does with them (make bench-stats).
"""

from collections.abc import Iterable, Set
from hashlib import blake2b
from typing import Any

from msgspec.structs import astuple

from services.stats.agents import Agent
from services.stats.coverage import Span, union_of
from services.stats.tally import Window, WindowKey

HASH_BYTES = 8  # of an address, and of a user agent; a listener is both. queries.sql cuts the column by it
MICROSECONDS = 1_000_000  # what PostgreSQL keeps of a second
_APP_CHARACTERS = 200


class Hashes:
    """Keyed hashes of one day (R22)."""

    def __init__(self, salt: bytes) -> None:
        self._of_address = blake2b(key=salt, digest_size=HASH_BYTES, person=b"address")
        self._of_agent = blake2b(key=salt, digest_size=HASH_BYTES, person=b"agent")

    def addresses(self, keys: Iterable[bytes]) -> bytes:
        """Of each address, one behind the other."""
        fresh = self._of_address.copy
        found = []
        for key in keys:
            hashed = fresh()
            hashed.update(key)
            found.append(hashed.digest())
        return b"".join(found)

    def agent(self, agent: Agent) -> bytes:
        """Of the whole text."""
        hashed = self._of_agent.copy()
        hashed.update(agent.key)
        return hashed.digest()


class Numbers(dict[Any, int]):
    """Numbers from 1 for what is written once, in a list that rows point into."""

    def __missing__(self, item: Any) -> int:
        number = self[item] = len(self) + 1
        return number


def window_columns(windows: dict[WindowKey, Window], hashes: Hashes, allowed: Set[bytes]) -> dict[str, Any]:
    """One day's windows, of which there is at least one; `allowed` are addresses that may have any volume."""
    episodes, agents = Numbers(), Numbers()
    of_episode, sizes, of_agent, addresses = zip(*windows, strict=True)
    starts, referrers, firsts, ends, byte_counts, requests, countries, apart = zip(
        *map(astuple, windows.values()), strict=True
    )
    return {
        "episode_numbers": _numbers(tuple(map(episodes.__getitem__, of_episode))),
        "agent_numbers": _numbers(tuple(map(agents.__getitem__, of_agent))),
        "total_sizes": _numbers(sizes),
        "addresses": hashes.addresses(addresses),
        "allowed": [hashes.addresses([address]) for address in allowed],
        "firsts": _numbers(firsts),
        "ends": _numbers(ends),
        "ranges": _ranges(firsts, ends, apart),
        "first_starts": _numbers(tuple([start * MICROSECONDS for start in starts])),
        "requests": _numbers(requests),
        "bytes": _numbers(byte_counts),
        "countries": _texts(countries),
        "referrers": _texts(referrers),
        "shows": [episode.show for episode in episodes],
        "episodes": [episode.name for episode in episodes],
        "apps": [app_of(agent) for agent in agents],
        "app_types": [agent.kind for agent in agents],
        "devices": [agent.device for agent in agents],
        "agent_hashes": [hashes.agent(agent) for agent in agents],
    }


def app_of(agent: Agent) -> str:
    """What aggregates call an app: a name of the list, never a header's own text."""
    return agent.name[:_APP_CHARACTERS]


def _ranges(firsts: tuple[int, ...], ends: tuple[int, ...], apart: tuple[list[Span] | None, ...]) -> str:
    """Multiranges of the windows that are in pieces; the others have one range, from first to end."""
    return _texts([
        "" if others is None else _multirange(union_of([(first, end), *others]))
        for first, end, others in zip(firsts, ends, apart, strict=True)
    ])  # fmt: skip


def _multirange(spans: list[Span]) -> str:
    return "{" + ",".join([f"[{first},{end})" for first, end in spans]) + "}"


def _numbers(values: tuple[float, ...]) -> str:
    """Whole numbers; of a fraction the part before the point."""
    return "{" + ("%d," * len(values))[:-1] % values + "}"


def _texts(values: Iterable[str]) -> str:
    """Texts without quotes and backslashes: ranges, codes, host names."""
    return '{"' + '","'.join(values) + '"}'
