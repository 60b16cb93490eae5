"""The list of user agents: the project's own, scored on examples it was made without, and the full upstream files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.stats.agents import OWN_LIST, AgentBook, OwnList, Verdict, agent_of, subscribers_of
from services.stats.opawg import OpawgList
from sidelinja_jobs import SettingsError
from tests.databases import ROOT

FILES = {"bots": "bot", "apps": "app", "libraries": "library", "browsers": "browser"}


@pytest.fixture(scope="module")
def upstream() -> Path:
    """The upstream list that lies beside the project for tests."""
    folder = ROOT.parent / "shared" / "data" / "opawg-user-agents-v2"
    if not folder.is_dir():
        pytest.skip("the upstream list is not there: expected ../shared/data/opawg-user-agents-v2 beside the project")
    return folder


def examples(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Every example of a file, with the name of its entry."""
    entries: list[Any] = json.loads((folder / f"{name}.json").read_text())["entries"]
    return ((entry["name"], text) for entry in entries for text in entry.get("examples", []))


def test_no_podcast_app_is_taken_for_a_bot_by_the_own_list(upstream: Path) -> None:
    own = OwnList()

    taken = [text for _, text in examples(upstream, "apps") if agent_of(text, own).exclusion is not None]

    assert taken == []


def test_the_own_list_finds_as_many_bots_and_apps_as_the_page_says(upstream: Path) -> None:
    own = OwnList()
    bots = sum(agent_of(text, own).exclusion is not None for _, text in examples(upstream, "bots"))
    apps = sum(agent_of(text, own).kind == "app" for _, text in examples(upstream, "apps"))

    assert (bots, len(list(examples(upstream, "bots")))) == (166, 342)
    assert (apps, len(list(examples(upstream, "apps")))) == (305, 968)


def test_every_upstream_example_is_its_own_entry_when_the_full_list_is_loaded(upstream: Path) -> None:
    full = OpawgList(upstream)

    others = [
        text
        for name, kind in FILES.items()
        for entry, text in examples(upstream, name)
        if (found := full(text)).name != entry or found.kind != kind or (kind == "app" and found.is_bot)
    ]

    assert others == []
    assert full.version.startswith("opawg-v2@")


def test_the_full_list_is_read_in_order_and_its_version_is_its_content(tmp_path: Path) -> None:
    def write(**names: list[dict[str, str]]) -> OpawgList:
        for name in (*FILES, "devices"):
            (tmp_path / f"{name}.json").write_text(json.dumps({"entries": names.get(name, [])}))
        return OpawgList(tmp_path)

    first = write(bots=[{"name": "B", "pattern": "^App/1"}], apps=[{"name": "A", "pattern": "^App"}],
                  libraries=[{"name": "L", "pattern": "^lib", "category": "bot"}],
                  devices=[{"name": "Phone", "pattern": "iPhone"}])  # fmt: skip

    assert first("App/1") == Verdict("B", "bot", "", True)
    assert first("App/2 iPhone") == Verdict("A", "app", "Phone", False)
    assert first("lib/1") == Verdict("L", "library", "", True)
    assert first("x-spider") == Verdict("", "unknown", "", True)
    assert write().version != first.version


@pytest.mark.parametrize(
    "content", ["{", '{"entries": [{"name": "A"}]}', '{"entries": [{"name": "A", "pattern": "("}]}']
)
def test_a_file_of_the_full_list_that_cannot_be_used_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "bots.json").write_text(content)

    with pytest.raises(SettingsError, match=r"whose bots\.json cannot be used"):
        OpawgList(tmp_path)


def test_what_no_entry_names_is_a_bot_by_its_own_words() -> None:
    own = OwnList()
    bots = ("Anybot/1", "CRAWLER", "a spider", "Audio Transcriber 2", "feed-fetcher", "Podimporter/1", "x-scraper")
    people = ("Ukjent/1", "AntennaPod Importer/3.1", "Noe nytt (iPhone)")

    assert [text for text in bots if agent_of(text, own).exclusion is None] == []
    assert [text for text in people if agent_of(text, own).exclusion is not None] == []


NAMED = {
    "Podcasts/4022.610.1 CFNetwork/1408.0.4 Darwin/22.5.0": ("Apple Podcasts", "app", "Apple device"),
    "AppleCoreMedia/1.0.0.20D67 (iPhone; U; CPU OS 16_3_1 like Mac OS X)": ("AppleCoreMedia", "library", "iPhone"),
    "Spotify/8.8.12 Android/33 (SM-G991B)": ("Spotify", "app", "Android"),
    "AntennaPod/3.4.0": ("AntennaPod", "app", ""),
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/120.0 Edg/120.0": ("Edge", "browser", "Windows"),
    "": ("", "unknown", ""),
    "Noe nytt/1 (Linux)": ("", "unknown", "Linux"),
}  # fmt: skip


@pytest.mark.parametrize("text", list(NAMED))
def test_app_kind_and_device_are_told(text: str) -> None:
    agent = agent_of(text, OwnList())

    assert (agent.name, agent.kind, agent.device) == NAMED[text]


def test_a_hashed_header_is_seen_and_counts() -> None:
    agent = agent_of("f3072eb4", OwnList())

    assert (agent.is_hashed, agent.exclusion) == (True, None)


def test_subscribers_are_read_from_what_the_fetcher_says() -> None:
    assert subscribers_of("Feedly/1.0 (+http://www.feedly.com/fetcher.html; 1234 subscribers)") == 1234
    assert subscribers_of("Inoreader; 1 reader") == 1
    assert subscribers_of("99999999999 subscribers") == 0
    assert subscribers_of("subscribers") == 0


def test_a_book_reads_each_text_once_and_forgets_when_it_has_grown() -> None:
    asked: list[str] = []
    book = AgentBook(lambda text: asked.append(text) or Verdict("", "unknown"))
    book.MOST = 2
    assert book["a"] is book["a"]
    for text in "abc":
        _ = book[text]
    book.forget()

    assert (asked, len(book)) == (["a", "b", "c"], 0)


def test_the_own_list_names_no_token_twice_in_a_group() -> None:
    text = OWN_LIST.read_text()

    assert text.count('version = "jobbko-') == 1
    assert all(len(tokens) == len(set(tokens)) for _, _, _, tokens in OwnList()._entries)
