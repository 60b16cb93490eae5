"""The characters of a paste: broken ones repaired, invisible ones taken out, white space made plain.

Quotes and dashes stay as they are: «», “ ” and – are the author's.
"""

import html
import re
import unicodedata

from openrouter_client.unicode_text import sound_text
from services.research.mojibake import repair

# U+0085 is none: in broken text it is half a letter.
LINE_END = re.compile("\r\n|[\n\r\x0b\x1c-\x1e\u2028\u2029]")
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
BIDI = re.compile(f"[{_BIDI}]")
# Soft hyphens, zero-width signs, direction marks, private signs, tags: what no text needs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u2060-\u2064\u206a-\u206f\u3164"
    f"\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff\ue000-\uf8ff{_BIDI}\U000e0000-\U0010ffff]"
)
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_BULLETS = re.compile("[\uf0b7\uf0a7\uf0d8\uf076\uf0fc]")  # a word processor's symbol font
# Joiners belong between emoji and inside scripts that need them; elsewhere they hide things.
_JOINER = re.compile(
    "(?<![\u0590-\u1fff\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])[\u200c\u200d]+|[\u200c\u200d]+(?=\\s|$)"
)
_PLAIN = re.compile("[\t -~\u00a1-\u00ac\u00ae-\u02ff–—‘’“”•…€\U0001f300-\U0001faff]*")
# The letters and signs that somebody who knows no keyboard for them writes so; &lt; and &amp; may be meant.
_ENTITY = re.compile(
    "&(?:aring|aelig|oslash|Aring|AElig|Oslash|[aou]uml|eacute|egrave|ndash|mdash|[lr]aquo|[lr]dquo"
    "|[lr]squo|hellip|nbsp"
    "|shy|deg|sect|quot|#\\d{3,5});|&amp;(?= )"
)
_QUOTED_LETTER = re.compile("=C[2-5]=[89AB][0-9A-F]|=E2=8[0-9A-F]=[89AB][0-9A-F]")
_QUOTED_RUN = re.compile("(?:=[0-9A-F]{2})+")
_LEAST_QUOTED, _SAMPLE = 2, 200_000


def is_quoted_printable(text: str) -> bool:
    """Whether a mail's transport coding was pasted with it: several letters stand as =C3=B8."""
    return len(_QUOTED_LETTER.findall(text[:_SAMPLE])) >= _LEAST_QUOTED


def decode_quoted(line: str) -> str:
    """A line without that coding; what is none of it stays."""
    if line.endswith("="):
        line = line[:-1]
    return _QUOTED_RUN.sub(_unquoted, line)


def _unquoted(found: re.Match[str]) -> str:
    try:
        return bytes.fromhex(found.group().replace("=", "")).decode()
    except UnicodeDecodeError:
        return found.group()


def sound(text: str) -> str:
    """The paste as text that can be stored: halves of a surrogate pair joined, lone ones replaced."""
    return sound_text(text.replace("\x00", ""))


def clean_characters(line: str, *, others_are_broken: bool = False) -> tuple[str, list[str]]:
    """A line with plain characters, and what was done to it."""
    if line.isascii() and line.isprintable() and "&" not in line:
        return line, []
    if _PLAIN.fullmatch(line) and not (others_are_broken or "Ã" in line or "â" in line or "&" in line):
        return line, []
    done: list[str] = []
    steps = (
        ("entities decoded", lambda text: _ENTITY.sub(lambda found: html.unescape(found.group()), text)),
        ("mojibake repaired", lambda text: repair(text, others_are_broken=others_are_broken)),
        ("bullets made plain", lambda text: _BULLETS.sub("•", text)),
        ("invisible characters removed", lambda text: _JOINER.sub("", _INVISIBLE.sub("", text))),
        ("spaces made plain", lambda text: _SPACES.sub(" ", text)),
        ("accents composed", _composed),
    )
    for how, step in steps:
        changed = step(line)
        if changed != line:
            line = changed
            done.append(how)
    return line, done


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)
