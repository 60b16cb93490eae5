"""Takes out paragraphs that stand twice, and a line that is repeated right below itself."""

import re

from services.research.line import Line

_LETTERS = re.compile(r"[^\W_]+")

_LEAST_LETTERS = 60  # of a paragraph; a shorter one may be said twice


def remove_duplicates(lines: list[Line]) -> None:
    """The first copy stays. Tables and code are left alone."""
    seen: set[str] = set()
    above = ""
    for line in lines:
        if not line.is_kept or line.kind in ("code", "row"):
            continue
        letters = "".join(_LETTERS.findall(line.text.casefold()))
        if letters and (letters in seen or (letters == above and " " in line.text.strip("- "))):
            line.remove("duplicate")
        else:
            above = letters
            if len(letters) >= _LEAST_LETTERS:
                seen.add(letters)
