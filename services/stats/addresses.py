"""Client addresses: what of them is the listener (R22, R23), and lists of networks (R13, R36).

An address lives in memory alone, as long as a batch. What is stored is a keyed hash with the day's key.
"""

import ipaddress
import socket
from bisect import bisect_right
from collections.abc import Callable, Iterable

import msgspec

UNKNOWN_COUNTRY = "ZZ"
MOST_KNOWN = 50_000
_MAPPED = b"\0" * 10 + b"\xff\xff"
_LONGEST_TEXT = 100
_IPV4_BYTES = 4
_NETWORK_BYTES = 8  # of an IPv6 address

Lookup = Callable[[bytes], str]  # from a packed address to a country


class Address(msgspec.Struct, eq=False, gc=False):
    """A listener's place in the net; one object for all its spellings while it is remembered, compared by identity.

    `key`: four bytes of IPv4, or the first eight of IPv6, which is what a household or a phone has.
    """

    key: bytes
    country: str = UNKNOWN_COUNTRY
    is_allowed: bool = False  # any volume (R31): it, or another address of its network
    is_masked: bool = False  # looks as if Caddy's ip_mask had been at it
    hashed: bytes = b""  # under the key that stands beside it
    hashed_with: bytes | None = None


DENIED = Address(b"")  # R13, R36: whoever it is


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

    def __contains__(self, packed: bytes) -> bool:
        index = bisect_right(self._starts[len(packed)], packed) - 1
        return index >= 0 and packed <= self._ends[len(packed)][index]


class AddressBook(dict[str, Address | None]):
    """Addresses by their text, each read once as long as it is remembered; None for what is no address, or DENIED.

    A dict with `__missing__`, since it is asked for every request.
    """

    def __init__(self, deny: Networks, allow: Networks, country_of: Lookup | None = None) -> None:
        super().__init__()
        self._deny, self._allow, self._country_of = deny, allow, country_of
        self._by_key: dict[bytes, Address] = {}

    def __missing__(self, text: str) -> Address | None:
        address = self[text] = self._read(text)
        return address

    def forget(self) -> None:
        """Between batches, when there are many."""
        if len(self) > MOST_KNOWN:
            self.clear()
            self._by_key.clear()

    def _read(self, text: str) -> Address | None:
        packed = packed_address(text)
        if packed is None:
            return None
        is_allowed = packed in self._allow
        if not is_allowed and packed in self._deny:
            return DENIED
        key = packed if len(packed) == _IPV4_BYTES else packed[:_NETWORK_BYTES]
        address = self._by_key.get(key)
        if address is None:
            address = self._by_key[key] = Address(key, self._country(key), is_masked=packed[3:] == b"\0")
        address.is_allowed |= is_allowed
        return address

    def _country(self, key: bytes) -> str:
        """By the network, so that one listener has one country whatever the order of the lines."""
        if self._country_of is None:
            return UNKNOWN_COUNTRY
        return self._country_of(key if len(key) == _IPV4_BYTES else key + bytes(_NETWORK_BYTES))


def packed_address(text: str) -> bytes | None:
    """Four or sixteen bytes; IPv4 that is mapped into IPv6 is IPv4 (R23)."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            packed = socket.inet_pton(family, text)
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
