"""Accounts: who is behind a request, and the pages' rule for operators."""

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

Role = Literal["viewer", "operator"]
Page = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Account:
    """Who asks. `origin`: by a session of their own, by the proxy's header, or since nobody has to log in.

    `cursor` is where the events of the live view go on after this page (services.admin.live).
    """

    name: str
    role: Role
    origin: Literal["session", "proxy", "open"]
    cursor: str

    @property
    def is_operator(self) -> bool:
        """May they change anything?"""
        return self.role == "operator"


def operator_only(page: Page) -> Page:
    """For pages that a viewer has no use for, such as the question before an action. POSTs are refused without it."""

    @functools.wraps(page)
    async def guarded(request: Request) -> Response:
        if not request.state.account.is_operator:
            raise HTTPException(403)
        return await page(request)

    return guarded
