"""Client addresses: what of them is the listener (R22, R23), and lists of networks (R13, R36).

An address lives in memory alone, as long as a batch. What is stored is a keyed hash with the day's key.
"""

import ipaddress
from bisect import bisect_right
from collections.abc import Callable, Iterable
from enum import Enum, auto
from socket import AF_INET, AF_INET6, inet_pton

UNKNOWN_COUNTRY = "ZZ"
MOST_KNOWN = 50_000
_MAPPED = b"\0" * 10 + b"\xff\xff"
_LONGEST_TEXT = 100
_IPV4_BYTES = 4
_NETWORK_BYTES = 8  # of an IPv6 address

Lookup = Callable[[bytes], str]  # from a packed address to a country


class Standing(Enum):
    """What the lists say of an address."""

    NONE = auto()
    DENIED = auto()
    ALLOWED = auto()


class Networks:
    """A set of networks, asked in logarithmic time with packed addresses."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Raises ValueError for what is no network."""
        spans: dict[int, list[tuple[bytes, bytes]]] = {4: [], 16: []}
        for text in texts:
            network = ipaddress.ip_network(text.strip(), strict=False)
            spans[network.max_prefixlen // 8].append((network[0].packed, network[-1].packed))
        self._starts: dict[int, list[bytes]] = {}
        self._ends: dict[int, list[bytes]] = {}
        for length, found in spans.items():
            disjoint: list[tuple[bytes, bytes]] = []
            for start, end in sorted(found):
                if disjoint and start <= disjoint[-1][1]:
                    disjoint[-1] = (disjoint[-1][0], max(end, disjoint[-1][1]))
                else:
                    disjoint.append((start, end))
            self._starts[length] = [start for start, _ in disjoint]
            self._ends[length] = [end for _, end in disjoint]

    def __bool__(self) -> bool:
        return any(self._starts.values())

    def __contains__(self, packed: bytes) -> bool:
        index = bisect_right(self._starts[len(packed)], packed) - 1
        return index >= 0 and packed <= self._ends[len(packed)][index]


class AddressBook:
    """Reads client addresses, and knows what the lists say of them.

    An address of IPv4 is read anew each time: that costs less than to look it up among many (make bench-stats).
    """

    def __init__(self, deny: Networks, allow: Networks, country_of: Lookup | None = None) -> None:
        self._deny, self._allow, self._country_of = deny, allow, country_of
        self.has_lists, self.has_countries = bool(deny) or bool(allow), country_of is not None
        self._keys: dict[str, bytes | None] = {}
        self._standings: dict[str, Standing] = {}
        self._countries: dict[bytes, str] = {}

    def key_of(self, text: str) -> bytes | None:
        """R22: four bytes of IPv4, or the first eight of IPv6, which is what a household or a phone has."""
        if ":" not in text:
            try:
                return inet_pton(AF_INET, text)
            except (OSError, ValueError):
                pass
        if text not in self._keys:
            packed = packed_address(text)
            self._keys[text] = packed if packed is None or len(packed) == _IPV4_BYTES else packed[:_NETWORK_BYTES]
        return self._keys[text]

    def standing_of(self, text: str) -> Standing:
        """R13, R36: denied networks are not counted; what is allowed is, whatever its volume (R31)."""
        if text not in self._standings:
            packed = packed_address(text) or b""
            is_allowed = bool(packed) and packed in self._allow
            is_denied = bool(packed) and not is_allowed and packed in self._deny
            self._standings[text] = Standing.ALLOWED if is_allowed else Standing.DENIED if is_denied else Standing.NONE
        return self._standings[text]

    def country_of(self, key: bytes) -> str:
        """By the key, so that one listener has one country whatever the order of the lines."""
        if self._country_of is None:
            return UNKNOWN_COUNTRY
        if key not in self._countries:
            packed = key if len(key) == _IPV4_BYTES else key + bytes(_NETWORK_BYTES)
            self._countries[key] = self._country_of(packed)
        return self._countries[key]

    def forget(self) -> None:
        """Between batches, when there are many."""
        for known in (self._keys, self._standings, self._countries):
            if len(known) > MOST_KNOWN:
                known.clear()


def looks_masked(key: bytes) -> bool:
    """As if Caddy's ip_mask had been at it."""
    return key[3:] == b"\0"


def packed_address(text: str) -> bytes | None:
    """Four or sixteen bytes; IPv4 that is mapped into IPv6 is IPv4 (R23)."""
    for family in (AF_INET, AF_INET6):
        try:
            packed = inet_pton(family, text)
        except (OSError, ValueError):  # also a NUL in the text
            continue
        return packed[12:] if packed.startswith(_MAPPED) else packed
    bare = _bare(text)
    return packed_address(bare) if bare != text else None


def _bare(text: str) -> str:
    """An address without what may stand around it: brackets, a port, a zone."""
    if len(text) > _LONGEST_TEXT:
        return text
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    return bare.partition("%")[0]
