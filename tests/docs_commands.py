"""The shell commands of README.md and docs/: in code blocks of a shell, and in the text between backticks."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.databases import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = ("make", "docker", "jobs", "curl", "python", ".venv/bin/python", "sed", "touch", "psql", "kubectl")
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_STATEMENT = re.compile(r"select |insert into .*\(.*\) values", re.IGNORECASE)
_COMMENT = re.compile(r"\s+# .*$")
_IN_CONTAINER = re.compile(r"docker compose run (?:--rm|-T|--no-deps| )+ jobs\b|docker exec \S+\(.*\) jobs\b")


@dataclass(frozen=True)
class Command:
    """A command as it is written, and the page that it stands on."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def of_jobs(self) -> str | None:
        """What it asks of the command line `jobs`, here or in a container; None of another program."""
        inside = _IN_CONTAINER.match(self.text)
        if inside is not None:
            return self.text[inside.end() :].strip()
        return self.text[5:] if self.text.startswith("jobs ") else None

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def all_commands() -> list[Command]:
    """Every command, each once a page."""
    return list(dict.fromkeys(command for page in PAGES for command in _commands_of(page)))


def _commands_of(page: Path) -> Iterator[Command]:
    text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
    for block in _BLOCK.finditer(text):
        if block[2] in ("", "sh"):
            for line in re.sub(r"\\\n\s*", " ", block[3]).splitlines():
                if _is_command(line.strip()):
                    yield Command(name, _COMMENT.sub("", line.strip()))
    for inline in _INLINE.finditer(_BLOCK.sub("", text)):
        if _is_command(inline[1]):
            yield Command(name, inline[1])


def _is_command(line: str) -> bool:
    program, blank, _ = line.partition(" ")
    return program in PROGRAMS and blank != ""


def has_test(test: str) -> bool:
    """Whether there is the test that `tests/…py::name` names."""
    file, _, name = test.partition("::")
    path = ROOT / file
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


@dataclass(frozen=True)
class Statement:
    """A statement in SQL and the page that it stands on."""

    page: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}: {self.text[:60]}"


def all_statements() -> list[Statement]:
    """Those in code blocks of SQL, and those between backticks that are whole."""
    found = []
    for page in PAGES:
        text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
        found += [Statement(name, block[3]) for block in _BLOCK.finditer(text) if block[2] == "sql"]
        inline = (match[1] for match in _INLINE.finditer(_BLOCK.sub("", text)))
        found += [Statement(name, line) for line in inline if _STATEMENT.match(line) and not line.endswith(" …")]
    return list(dict.fromkeys(found))
