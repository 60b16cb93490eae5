"""The versioned files that questions are made of, and the form that all questions have.

A folder holds prompts/<language>.<version>.md, in sections, and schemas/<name>.<version>.json.
"""

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from openrouter_client.fence import fence_for, without_template_tokens
from openrouter_client.request import AnswerSchema, Message

OUTPUT_LANGUAGES = ("nb", "nn", "en")  # that there are prompts in


@dataclass(frozen=True)
class Wording:
    """The prompts and schemas of a service."""

    folder: Path
    version: str

    def sections(self, language: str) -> dict[str, str]:
        """The prompt's sections by name."""
        return _sections(self.folder / "prompts" / f"{language}.{self.version}.md")

    @functools.cached_property
    def fingerprint(self) -> str:
        """Version and digest of all prompts and schemas: changes with any letter of them, and stands in results."""
        files = sorted(
            [*self.folder.glob(f"prompts/*.{self.version}.md"), *self.folder.glob(f"schemas/*.{self.version}.json")]
        )
        digest = hashlib.sha256(b"\0".join(file.name.encode() + b"\0" + file.read_bytes() for file in files))
        return f"{self.version}-{digest.hexdigest()[:8]}"

    def schema(self, file: str, name: str, fields: Sequence[str]) -> AnswerSchema:
        """The schema of an answer with the asked fields alone."""
        whole = _schema(self.folder / "schemas" / f"{file}.{self.version}.json")
        asked = {"properties": {field: whole["properties"][field] for field in fields}, "required": list(fields)}
        return AnswerSchema(name, self.fingerprint, whole | asked)

    def messages(
        self, language: str, job_id: UUID, step: str, sections: Iterable[str], material: str, *, is_again: bool
    ) -> tuple[Message, ...]:
        """Instructions, material in its fence, then the task and its `field:` sections.

        `is_again`: the last answer was in another language.
        """
        words = self.sections(language)
        material = without_template_tokens(material)
        fence = fence_for(str(job_id), material)
        markers = {"opening": fence.opening, "closing": fence.closing}
        task = [words[f"task:{step}"].format(**markers), "", *(words[f"field:{section}"] for section in sections)]
        if is_again:
            task += ["", words["language_again"]]
        return (
            Message("system", words["system"].format(**markers)),
            Message("user", fence.wrap(material)),
            Message("user", "\n".join(task)),
        )


def output_language(wanted: str | None, of_text: str | None, fallback: str) -> str:
    """The language of an answer, decided here and never by the model: the payload's word, else the text's language
    where there are prompts in it, else the fallback."""
    return wanted or (of_text if of_text in OUTPUT_LANGUAGES else None) or fallback


@functools.cache
def _sections(file: Path) -> dict[str, str]:
    parts = re.split(r"^## (\S+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


@functools.cache
def _schema(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded
