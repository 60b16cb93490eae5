"""docs/architecture.md names files and tests: they exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def named(pattern: str) -> set[str]:
    return set(re.findall(pattern, PAGE))


def test_every_test_that_holds_a_sentence_exists() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    names = {name for name in named(r"`(test_\w+)`")}

    assert len(names) > 25
    assert {name for name in names if f"def {name}(" not in sources} == set()


def test_every_file_that_does_something_exists() -> None:
    folders = [ROOT, ROOT / "db" / "init", ROOT / "shared" / "sidelinja_jobs"]
    names = named(r"`([\w/]+\.(?:py|sql|toml|yaml))[`:]")

    missing = {name for name in names if not any((folder / name).exists() for folder in folders)}
    assert missing == {"job_type.toml"}  # one in each service's folder
    assert len(names) > 12


def test_every_function_that_is_named_exists() -> None:
    calls = named(r"`(\w+\.(?:py|sql)): (\w+)")
    for name, function in calls:
        found = [*(ROOT / "shared").rglob(name), *(ROOT / "db").rglob(name)]

        assert found, name
        assert re.search(rf"(?:def|function) {function}\(", found[0].read_text(encoding="utf-8")), (name, function)
