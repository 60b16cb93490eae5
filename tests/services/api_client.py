"""A client of the JSON API as another program would be: a token, nothing else."""

from collections.abc import Sequence
from typing import Any

import httpx

from services.admin.access.digests import digest
from services.admin.api.tokens import SCOPES, new_token
from tests.services.admin_site import AdminSite

SCHEMA: dict[str, Any] = {
    "$ref": "#/$defs/P",
    "$defs": {
        "P": {
            "type": "object",
            "properties": {"path": {"type": "string", "maxLength": 20}, "n": {"type": "integer", "minimum": 0}},
            "required": ["path"],
            "additionalProperties": False,
        }
    },
}


def api_client(site: AdminSite, *scopes: str, name: str = "suite") -> httpx.Client:
    """A client with a new token of these scopes; all of them if none is named."""
    token = make_token(site, scopes or SCOPES, name=name)
    return httpx.Client(base_url=f"{site.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20)


def make_token(site: AdminSite, scopes: Sequence[str] = SCOPES, *, name: str = "suite") -> str:
    """A token that the database knows."""
    token = new_token()
    site.database.rows("select add_api_token(%s, %s, %s)", name, digest(token), list(scopes))
    return token
