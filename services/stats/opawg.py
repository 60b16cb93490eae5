"""Reads the full list of the Open Podcast Analytics Working Group (user-agents-v2) from a folder.

An operator who wants its exact app names fetches the repository and mounts its `src` folder; nothing of it is part of
this project. The files are asked in the order that their own remarks give: bots, apps, libraries, browsers.
"""

import hashlib
import re
from pathlib import Path
from typing import Annotated

import msgspec

from services.stats.agents import UNKNOWN, Verdict, looks_like_bot
from sidelinja_jobs import SettingsError

_KINDS = {"bots": "bot", "apps": "app", "libraries": "library", "browsers": "browser"}
_DEVICES = "devices"


class _Entry(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(max_length=200)]
    pattern: str
    category: str = ""


class _Content(msgspec.Struct):
    entries: list[_Entry]


class OpawgList:
    """The list of a folder; its version is the digest of its files, since they don't name one."""

    def __init__(self, folder: Path) -> None:
        """Raises SettingsError, naming the file, when one cannot be used."""
        digest = hashlib.sha256()
        self._entries: list[tuple[re.Pattern[str], str, str, bool]] = []
        self._devices: list[tuple[re.Pattern[str], str]] = []
        for file in (*_KINDS, _DEVICES):
            path = folder / f"{file}.json"
            try:
                text = path.read_bytes()
                entries = msgspec.json.decode(text, type=_Content).entries
                patterns = [(re.compile(entry.pattern), entry) for entry in entries]
            except (OSError, msgspec.MsgspecError, re.error) as error:
                raise SettingsError(
                    f"STATS_AGENTS_FOLDER is {str(folder)!r}, whose {file}.json cannot be used: {error}"
                ) from error
            digest.update(text)
            if file == _DEVICES:
                self._devices = [(pattern, entry.name) for pattern, entry in patterns]
            else:
                kind = _KINDS[file]
                self._entries += [
                    (pattern, entry.name, kind, kind == "bot" or (kind == "library" and entry.category == "bot"))
                    for pattern, entry in patterns
                ]
        self.version = f"opawg-v2@{digest.hexdigest()[:12]}"

    def __call__(self, text: str) -> Verdict:
        for pattern, name, kind, is_bot in self._entries:
            if pattern.search(text):
                return Verdict(name, kind, "" if is_bot else self._device(text), is_bot)
        return Verdict("", UNKNOWN, self._device(text), looks_like_bot(text))

    def _device(self, text: str) -> str:
        return next((name for pattern, name in self._devices if pattern.search(text)), "")
