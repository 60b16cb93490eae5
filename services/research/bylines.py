"""Finds who wrote a text: by-lines in bokmål, nynorsk, English and Sámi, and names that stand alone at their place."""

import re

_LETTER = r"A-ZÆØÅÁČĐŊŠŦŽÉÈÖÄÜÓÍ"
_PART = rf"[{_LETTER}][\w’'.-]*"
_PARTICLE = r"(?:av|af|von|van|der|den|de|di|la|le|bin|ibn|al|el|dos|da|du)"
_NAME = rf"{_PART}(?: (?:{_PART}|{_PARTICLE})){{0,5}}"
_LABEL = (
    r"(?:tekst (?:og|&) (?:foto|bilder)|tekst/foto|tekst & foto|tekst|skrevet av|skrive av|av|by|words by"
    r"|written by|text by|forfatter(?:e|ar)?|forfattar|author(?:s|ed by)?|journalist|reporter|teaksta|čállán"
    r"|publisert av|lagt ut av|posted by|skribent|kontaktperson|programleiar|programleder|programledere"
    r"|hosted by|host|fra|frå|bylines?)"
)
_BYLINE = re.compile(rf"{_LABEL} ?[:–-]?[ \t]?(?P<names>[{_LETTER}].{{1,150}})", re.IGNORECASE)
_IN_BRACKETS = re.compile(rf"(?P<names>{_NAME}) \((?:tekst|text|tekst og foto|words)\)", re.IGNORECASE)
_ONE_NAME = re.compile(_NAME)
_NAMES_ALONE = re.compile(
    rf"(?P<names>{_PART}(?: (?:{_PART}|{_PARTICLE})){{1,4}}(?:(?:, | og | and | & ){_PART}(?: (?:{_PART}"
    rf"|{_PARTICLE})){{1,4}}){{0,5}})"
)
_SPLIT = re.compile(r", | og | and | & |/| ja | samt ")
_STOP = re.compile(
    r" [•·|–] |\t|  | \(|, (?=\d)|(?<=\w{3})\. | ?<|, publisert|, oppdatert| (?:publisert|published"
    r"|oppdatert|updated|on) |, i | \d{1,2}\.",
    re.IGNORECASE,
)
_ROLES = re.compile(
    r"\b(?:journalist\w*|reporter\w*|redaktør\w*|redaksjon\w*|correspondent|editor|writer|fotograf\w*"
    r"|photographer|forfatter\w*|kommentator|skribent|spaltist|professor|forsker|lege|advokat|rådgiver"
    r"|rådgjevar|leder|leiar|staff|columnist|seniorrådgiver|kommunikasjon\w*|direktør|stipendiat|student"
    r"|førsteamanuensis|desk|news|nyhets\w*|frilans\w*)\b",
    re.IGNORECASE,
)
_ROLE_LINE = re.compile(
    r"(?:\w+-?)?(?:journalist\w*|reporter|redaktør|fotograf|fotojournalist|kommentator|skribent|spaltist"
    r"|frilanser|frilansjournalist|correspondent|editor|staff writer|columnist|redaksjonen|desk"
    r"|nyhetsjournalist|praktikant|vaktsjef|reportasjeleder)(?: .{0,30})?\Z",
    re.IGNORECASE,
)
_NO_NAMES = re.compile(
    r"\b(?:ukjent|unknown|alle|hele|nye?|hvordan|slik|her|dette|kommune|kommunen|avdeling\w*|etat\w*|foto|annonse|side"
    r"|sider|and|the|this|all|our|your|in|on|with|med|for|til|på|som|er|har|i)\b",
    re.IGNORECASE,
)
_LONGEST = 160


def read_byline(text: str) -> list[str]:
    """The names in a line that says who wrote; empty where it is none."""
    if named := _IN_BRACKETS.fullmatch(text):
        return names_in(named.group("names"))
    found = _BYLINE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or (text.rstrip().endswith((".", "?", "!")) and text.count(" ") > 6):
        return []
    return names_in(found.group("names"))


def read_name_alone(text: str) -> list[str]:
    """The names in a line of nothing but names, two words each at least."""
    if len(text) > _LONGEST or _NAMES_ALONE.fullmatch(text) is None or _NO_NAMES.search(text):
        return []
    return names_in(text)


def is_role(text: str) -> bool:
    """Whether a line tells a person's work, such as Journalist."""
    return len(text) <= 50 and _ROLE_LINE.match(text) is not None


def names_in(text: str) -> list[str]:
    """The people in what follows a by-line's label; work and places are left out."""
    names: list[str] = []
    for part in _SPLIT.split(_STOP.split(text)[0]):
        part = part.strip(" ,;:.–-|")
        role = _ROLES.search(part)
        if role:
            part = part[: role.start()].strip(" ,;:–-|")
        if names and " " not in part:
            continue  # what follows the first name is a name of two words, or something else
        if part and _ONE_NAME.fullmatch(part) and not _NO_NAMES.search(part) and part not in names:
            names.append(part)
        elif names or not part:
            continue
        else:
            break
    return names[:8]
