"""Finds the name of the site: what the page's own lines call it."""

import re
from collections import Counter

from services.research.judgement import fold, judge
from services.research.line import Line

_COPYRIGHT = re.compile(
    r"(?:©|\(c\)|copyright|opphavsrett)(?:[\s©]|copyright)*(?:\d{4}(?: ?[-–] ?\d{4})?)?,? *(?:by |av "
    r")?(?P<name>(?!\d|copyright)[^.|,©\d][^.|,©]{1,58})",
    re.IGNORECASE,
)
_FORM = re.compile(
    r" (?:AS|ASA|SA|DA|ANS|Ltd\.?|Limited|Inc\.?|LLC|contributors|BA|IKS|KF|SUS|Mediehus|or its .*|and .*)(?: .*)?\Z"
)
_PUBLIC = re.compile(
    r"(?<![\w-])(?P<name>[A-ZÆØÅÁČĐŊŠŦŽ][\wáčđŋšŧžæøå-]+(?:[ -][A-ZÆØÅÁČĐŊŠŦŽ][\wáčđŋšŧžæøå-]+){0,3} "
    r"(?:kommune|kommuna|suohkan|fylkeskommune|tjielte|universitet\w*|sykehus|sjukehus|folkebibliotek"
    r"|bibliotek)"
    r"|(?:Direktoratet|Departementet|Statens) (?:for )?[a-zæøå]{4,}(?: og [a-zæøå]{4,})?)(?!\w)"
)
_PAPER = re.compile(
    r"(?:avis|avisa|blad|bladet|tidende|posten|nytt|journal|ledger|courier|times|herald|gazette|post|news"
    r"|magasinet|allehanda|dagblad|folkeblad|varden|wiki\w*)\Z",
    re.IGNORECASE,
)
_SLOGAN = re.compile(r" [–—|›»>-] | \(|: ")
_DOMAIN = re.compile(r"\.(?:example|no|com|org|net|info|se|dk|co\.uk)\Z", re.IGNORECASE)
_ENCYCLOPAEDIA = re.compile(r"(?:From|Fra|Frå) (?P<name>[A-ZÆØÅ][\wæøå]{2,30}), (?:an?|the|det|den|ei?t?) ")
_CAPITALS = re.compile(r"[A-ZÆØÅÁČĐŊŠŦŽ][\wæøå-]+(?: [A-ZÆØÅÁČĐŊŠŦŽ][\wæøå-]+){1,3}")
_LEAST_TIMES = 2
_FIRST_LINES = 14
_LONGEST = 40


def find_site(lines: list[Line], title: int | None, host: str) -> str | None:
    """The likeliest name, or None; `host` is that of the page's address, or empty."""
    head = [
        line for line in lines[: min(_FIRST_LINES, title if title is not None else _FIRST_LINES)] if not line.is_kept
    ]
    gone = [line for line in lines if not line.is_kept]
    texts = [fold(line.text) for line in gone]
    best, most = None, 0.0
    for rank, line in enumerate(head):
        name = _name(line.text)
        if name is None:
            continue
        folded = fold(name)
        weight = sum(1 for text in texts if folded in text) - 1 + _bonus(line, name, rank)
        weight += (
            2.0 if host and "".join(filter(str.isalnum, folded)) in host.replace(".", "").replace("-", "") else 0.0
        )
        if weight > most:
            best, most = name, weight
    if best is not None and most >= 1.0:
        return _capitalised(best)
    return _from_footer(gone) or _repeated(gone)


def _name(text: str) -> str | None:
    text = text.removeprefix("- ")
    if found := _PUBLIC.search(text):
        return found.group("name")
    name = _DOMAIN.sub("", _SLOGAN.split(text)[0].strip(" ,;-–"))
    if not 2 < len(name) <= _LONGEST or name.count(" ") > 3 or not name[:1].isupper() or not name[-1:].isalnum():
        return None
    judged = judge(name)
    return None if judged.family or judged.section or judged.is_menu or judged.is_sentence or judged.is_number else name


def _bonus(line: Line, name: str, rank: int) -> float:
    bonus = 1.0 if rank == 0 else 0.5 if rank < 3 else 0.0
    if _PUBLIC.search(name):
        bonus += 2.0
    if _PAPER.search(name):
        bonus += 1.0
    if len(line.text) > len(name) and _SLOGAN.search(line.text):
        bonus += 0.5
    return bonus


def _from_footer(gone: list[Line]) -> str | None:
    for line in reversed(gone):
        if found := _COPYRIGHT.search(line.text):
            name = _FORM.sub("", found.group("name").strip()).strip(" .,-–")
            if 2 < len(name) <= _LONGEST and name[:1].isupper():
                return name
    for line in gone:
        if found := _ENCYCLOPAEDIA.match(line.text):
            return found.group("name")
    for line in gone:
        if found := _PUBLIC.search(line.text):
            return found.group("name")
    return None


def _repeated(gone: list[Line]) -> str | None:
    """Capitalised words that several lines begin with: Somewhere News uses cookies, Somewhere News is owned by."""
    counts: Counter[str] = Counter()
    for line in gone:
        if found := _CAPITALS.match(line.text):
            words = found.group().split()
            counts.update({" ".join(words[:length]) for length in range(2, len(words) + 1)})
    told = [name for name, count in counts.items() if count >= _LEAST_TIMES and _name(name) == name]
    return max(told, key=lambda name: (counts[name], len(name)), default=None)


def _capitalised(name: str) -> str:
    return name.capitalize() if name.isupper() and len(name) > 4 and " " not in name else name
