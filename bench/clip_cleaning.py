"""How much of a paste's matter is kept and how much of the page around it goes, beside three libraries on their own.

Reads the corpus in tests/research_corpus. The libraries read HTML; plain pastes are given to them as a page with each
line in a paragraph, which is the fairest that can be done for them. Also measures the CPU time of a megabyte.

    .venv/bin/python bench/clip_cleaning.py [--lost]
"""

import argparse
import html
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator

import justext
import readability
import trafilatura
from lxml import html as lxml_html

from services.research.cleaner import Paste as Clipboard
from services.research.clip import make_clip
from tests.unit.clip_scoring import Score, clipboard, found_fields, score, squash, total
from tests.unit.marked_pastes import Paste, all_pastes, visible_lines

ROUNDS = 3
Way = Callable[[Paste], tuple[str, str]]


def page_of(paste: Paste) -> str:
    """The paste as a page."""
    if paste.is_html:
        return paste.content
    lines = (f"<p>{html.escape(line)}</p>" for line in visible_lines(paste.content, is_html=False))
    return f"<html><head><title></title></head><body>{''.join(lines)}</body></html>"


def by_us(paste: Paste) -> tuple[str, str]:
    clip = make_clip(clipboard(paste))
    return clip["clean_text"], clip["markdown"]


def by_trafilatura(paste: Paste) -> tuple[str, str]:
    text = trafilatura.extract(page_of(paste), favor_recall=True, include_tables=True, deduplicate=False) or ""
    return text, text


def by_justext(paste: Paste) -> tuple[str, str]:
    words = justext.get_stoplist("Norwegian_Bokmal") | justext.get_stoplist("Norwegian_Nynorsk")
    words |= justext.get_stoplist("English")
    found = justext.justext(page_of(paste).encode(), words, length_low=30, length_high=120, encoding="utf-8")
    text = "\n".join(paragraph.text for paragraph in found if not paragraph.is_boilerplate)
    return text, text


def by_readability(paste: Paste) -> tuple[str, str]:
    summary = readability.Document(page_of(paste)).summary()
    text = "\n".join(lxml_html.fromstring(summary).itertext())
    return text, text


WAYS: dict[str, Way] = {
    "research_clip": by_us,
    "trafilatura": by_trafilatura,
    "jusText": by_justext,
    "readability": by_readability,
}


def judged(way: Way, pastes: list[Paste]) -> Score:
    return total(score(paste, *way(paste)) for paste in pastes)


def print_scores(pastes: list[Paste], *, shows_lost: bool) -> None:
    groups = {part: [paste for paste in pastes if paste.part == part] for part in ("frozen", "rest", "blind")}
    groups["pages"] = [paste for paste in pastes if paste.is_html]
    print("| pastes | way | body lines kept | boilerplate removed |\n|---|---|---|---|")
    for group, members in groups.items():
        for name, way in WAYS.items():
            reached = judged(way, members)
            print(
                f"| {group} ({len(members)}) | {name} | {reached.body_kept:.1%} of {reached.body} "
                f"| {reached.own_removed:.1%} of {reached.own} |"
            )
            if shows_lost and name == "research_clip":
                for mark, lines in (("lost", reached.lost), ("kept", reached.kept)):
                    print(*(f"  {mark}: {line[:100]}" for line in lines), sep="\n")


def print_fields(pastes: list[Paste]) -> None:
    """How many of the fields that can be read in the pastes are found."""
    for field in ("title", "author", "published", "site", "language", "kind"):
        asked = [paste for paste in pastes if field not in paste.expected.get("open", [])]
        right = sum(
            squash(str(found_fields(make_clip(clipboard(paste)))[field] or ""))
            == squash(str(paste.expected.get(field) or ""))
            for paste in asked
        )
        print(f"{field}: {right} of {len(asked)}")


def megabytes() -> Iterator[tuple[str, Clipboard]]:
    """A megabyte of each sort of paste."""
    sentence = "Det er fylkesrådet som nå legger fram en ny avtale med rederiet, og den gjelder fra 2028. "
    text = "\n\n".join(f"{number} {sentence * 4}" for number in range(2700))[:1_000_000]
    yield "paragraphs", Clipboard(text)
    yield "broken letters", Clipboard(text.encode()[:800_000].decode("utf-8", "ignore").encode().decode("latin-1"))
    pages = [paste for paste in all_pastes() if not paste.is_html and paste.expected["kind"] == "plain"]
    pile = "\n\n".join(paste.content for paste in pages)
    yield "pasted pages in a row", Clipboard((pile * (1_000_000 // len(pile.encode()) + 1))[:900_000])
    lines = (f"Kari {number % 97} skrev om rute {number} mandag" for number in range(26_000))
    yield "short lines", Clipboard("\n".join(lines)[:1_000_000])
    rows = (f"{number}\tHavna i Østre Våg\t{number * 7 % 9973}\t{number % 99} %" for number in range(25_000))
    yield "table", Clipboard("\n".join(rows)[:950_000])
    yield from unlike_megabytes(pages)
    yield "HTML", Clipboard("", "".join(f"<p>{number} {sentence * 4}</p>" for number in range(2700))[:1_000_000])


def unlike_megabytes(pages: list[Paste]) -> Iterator[tuple[str, Clipboard]]:
    """Of lines and of rows that are all different: words of the matter in any order."""
    matter = " ".join(line.text for page in pages for line in page.lines if line.mark == "B")
    words = sorted(set(re.findall(r"(?<!\S)[A-Za-zÆØÅæøå]{2,}[.,]?(?!\S)", matter)))
    drawn = random.Random(3)  # noqa: S311 - the same in each run
    lines = (" ".join(drawn.choices(words, k=drawn.randint(3, 7))) for _ in range(25_000))
    yield "short lines, all different", Clipboard("\n".join(lines)[:960_000])
    names = (" ".join(drawn.choices(words, k=2)).title() for _ in range(22_000))
    rows = (
        f"{number}\t{name}\t{drawn.choice(words)}\t{drawn.randint(0, 99_999)}\t{drawn.random():.1%}"
        for number, name in enumerate(names)
    )
    yield "table, all different", Clipboard("\n".join(rows)[:960_000])


def print_seconds() -> None:
    for name, pasted in megabytes():
        size = len((pasted.text or pasted.html or "").encode())
        seconds = []
        for _ in range(ROUNDS):
            began = time.process_time()
            make_clip(pasted)
            seconds.append(time.process_time() - began)
        print(f"{name}: {statistics.median(seconds):.2f} s of CPU for {size / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lost", action="store_true", help="show the lines that were judged wrong")
    arguments = parser.parse_args()
    pastes = list(all_pastes())
    print_scores(pastes, shows_lost=arguments.lost)
    print()
    print_fields(pastes)
    print()
    print_seconds()


if __name__ == "__main__":
    main()
