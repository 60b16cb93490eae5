"""Countries of addresses, from a database that an operator may give (mmdb: GeoLite2, DB-IP Lite and others).

None given is no fault, and one that is missing or old is a warning: such files are fetched by other programs, which
sometimes fail on the first of the month.
"""

import ipaddress
import time
from pathlib import Path
from typing import Any

import maxminddb

from services.stats.addresses import UNKNOWN_COUNTRY, Lookup

MISSING, OLD = "country_file_missing", "country_file_old"
_OLD_SECONDS = 120 * 86400
_CODE_LETTERS = 2


def open_countries(path: Path | None) -> tuple[Lookup | None, str | None]:
    """How to look a country up, if at all, and a warning for the results."""
    if path is None:
        return None, None
    try:
        reader = maxminddb.open_database(path)
    except (OSError, ValueError, maxminddb.InvalidDatabaseError):
        return None, MISSING
    is_old = time.time() - reader.metadata().build_epoch > _OLD_SECONDS

    def country_of(packed: bytes) -> str:
        try:
            return _code(reader.get(ipaddress.ip_address(packed)))
        except (ValueError, maxminddb.InvalidDatabaseError):  # a database of IPv4 alone, or a broken one
            return UNKNOWN_COUNTRY

    return country_of, OLD if is_old else None


def _code(record: Any) -> str:
    """The two letters, wherever the database keeps them."""
    found = record if isinstance(record, dict) else {}
    country = found.get("country")
    code = country.get("iso_code") if isinstance(country, dict) else found.get("country_code")
    return code if isinstance(code, str) and len(code) == _CODE_LETTERS and code.isalpha() else UNKNOWN_COUNTRY
