"""Countries of addresses from an mmdb, which is written here byte by byte."""

import time
from pathlib import Path
from typing import Any

import pytest

from services.stats.addresses import AddressBook, Networks, packed_address
from services.stats.countries import MISSING, OLD, open_countries


def encoded(value: Any, name: str = "") -> bytes:
    """As the format writes short texts, numbers, lists and maps."""
    if isinstance(value, str):
        return bytes((2 << 5 | len(value),)) + value.encode()
    if isinstance(value, int):  # of 2, 4 or 8 bytes, by its name in the metadata
        content = value.to_bytes((value.bit_length() + 7) // 8, "big")
        if name == "build_epoch":
            return bytes((len(content), 2)) + content
        return bytes(((6 if name == "node_count" else 5) << 5 | len(content),)) + content
    if isinstance(value, list):
        return bytes((len(value), 4)) + b"".join(map(encoded, value))
    return bytes((7 << 5 | len(value),)) + b"".join(encoded(key) + encoded(item, key) for key, item in value.items())


def write_database(path: Path, record: Any, built: float, ip_version: int = 6) -> Path:
    """One node, both of whose sides lead to the record: every address has it."""
    metadata = {
        "binary_format_major_version": 2, "binary_format_minor_version": 0, "build_epoch": int(built),
        "database_type": "Test", "description": {}, "ip_version": ip_version, "languages": [], "node_count": 1,
        "record_size": 24,
    }  # fmt: skip
    to_record = (1 + 16).to_bytes(3, "big")
    tree = to_record + to_record + bytes(16)
    path.write_bytes(tree + encoded(record) + b"\xab\xcd\xefMaxMind.com" + encoded(metadata))
    return path


RECORDS: list[tuple[Any, str]] = [
    ({"country": {"iso_code": "NO"}}, "NO"),
    ({"country_code": "SE"}, "SE"),
    ({"country": {"iso_code": "NORWAY"}}, "ZZ"),
    ({"country": "NO"}, "ZZ"),
    ("NO", "ZZ"),
]


@pytest.mark.parametrize(("record", "country"), RECORDS)
def test_an_address_has_the_country_of_its_record(tmp_path: Path, record: Any, country: str) -> None:
    country_of, warning = open_countries(write_database(tmp_path / "a.mmdb", record, time.time()))
    book = AddressBook(Networks(), Networks(), country_of)

    assert warning is None
    for text in ("192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"):
        key = book.key_of(text)
        assert key is not None
        assert book.country_of(key) == country


def test_a_database_of_ipv4_alone_knows_nothing_of_ipv6_and_breaks_nothing(tmp_path: Path) -> None:
    country_of, _ = open_countries(write_database(tmp_path / "a.mmdb", {"country_code": "NO"}, time.time(), 4))

    assert country_of is not None
    assert [country_of(packed_address(text) or b"") for text in ("192.0.2.1", "2001:db8::1")] == ["NO", "ZZ"]


def test_an_old_database_is_used_with_a_warning(tmp_path: Path) -> None:
    country_of, warning = open_countries(write_database(tmp_path / "a.mmdb", {"country_code": "NO"}, 1_700_000_000))

    assert country_of is not None
    assert (country_of(b"\xc0\0\2\1"), warning) == ("NO", OLD)


def test_none_given_is_no_fault_and_a_missing_or_broken_one_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "broken.mmdb").write_bytes(b"x" * 5000)

    assert open_countries(None) == (None, None)
    assert open_countries(tmp_path / "none.mmdb") == (None, MISSING)
    assert open_countries(tmp_path / "broken.mmdb") == (None, MISSING)
