"""Runs the command line `jobs` in the test's own process, as a role of the test's database."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from sidelinja_jobs import cli
from tests.databases import Database


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Jobs:
    """Called with the arguments of a command."""

    def __init__(self, database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._database = database
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, role: str = "operator", columns: int | None = None) -> Ended:
        self._monkeypatch.setenv("DATABASE_URL", self._database.dsn(role))
        self._monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            self._monkeypatch.setenv("COLUMNS", str(columns))
        code = cli.main(list(arguments))
        printed = self._capsys.readouterr()
        return Ended(code, printed.out, printed.err)
