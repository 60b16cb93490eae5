"""Client addresses: what of them is the listener (R22, R23), and lists of networks (R13, R36).

An address lives in memory alone, as long as a batch. What is stored is a keyed hash with the day's key.
"""

import ipaddress
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

UNKNOWN_COUNTRY = "ZZ"

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Address:
    """`key`: four bytes of IPv4, or the first eight of IPv6, which is what a household or a phone has."""

    key: bytes
    is_denied: bool = False
    is_allowed: bool = False
    country: str = UNKNOWN_COUNTRY
    is_masked: bool = False  # looks as if Caddy's ip_mask had been at it


class Networks:
    """A set of networks, asked in logarithmic time."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Raises ValueError for what is no network."""
        spans: dict[int, list[tuple[int, int]]] = {4: [], 6: []}
        for text in texts:
            network = ipaddress.ip_network(text.strip(), strict=False)
            spans[network.version].append((int(network[0]), int(network[-1])))
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}
        for version, found in spans.items():
            merged: list[tuple[int, int]] = []
            for start, end in sorted(found):
                if merged and start <= merged[-1][1] + 1:
                    merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
                else:
                    merged.append((start, end))
            self._starts[version] = [start for start, _ in merged]
            self._ends[version] = [end for _, end in merged]

    def __contains__(self, address: IPAddress) -> bool:
        number = int(address)
        index = bisect_right(self._starts[address.version], number) - 1
        return index >= 0 and number <= self._ends[address.version][index]


Lookup = Callable[[IPAddress], str]


def no_country(_: IPAddress) -> str:
    """Where no database of countries is given."""
    return UNKNOWN_COUNTRY


class AddressBook:
    """Reads the text of an address, each one once; emptied between batches."""

    def __init__(self, deny: Networks, allow: Networks, country_of: Lookup = no_country) -> None:
        self._deny, self._allow, self._country_of = deny, allow, country_of
        self._known: dict[str, Address | None] = {}
        self._by_key: dict[bytes, Address] = {}

    def find(self, text: str) -> Address | None:
        """None for what is no address (an odd listener, a filter that replaced it)."""
        try:
            return self._known[text]
        except KeyError:
            address = self._known[text] = self._read(text)
            return address

    def forget(self) -> None:
        self._known.clear()
        self._by_key.clear()

    def _read(self, text: str) -> Address | None:
        found = parse_address(text)
        if found is None:
            return None
        key = found.packed if found.version == 4 else found.packed[:8]
        # Country and lists by the network, so that one listener has one country whatever the order of the lines.
        asked = found if found.version == 4 else ipaddress.IPv6Address(key + bytes(8))
        is_denied, is_allowed = found in self._deny, found in self._allow
        if is_denied or is_allowed:
            return Address(key, is_denied and not is_allowed, is_allowed, self._country_of(asked))
        if key not in self._by_key:
            self._by_key[key] = Address(
                key, country=self._country_of(asked), is_masked=found.version == 4 and key[3] == 0
            )
        return self._by_key[key]


def parse_address(text: str) -> IPAddress | None:
    """An address with or without brackets, port or zone; IPv4 that is mapped into IPv6 is IPv4 (R23)."""
    if len(text) > 100:
        return None
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found
