"""The head of a pasted mail: from whom, about what, when."""

import re
from dataclasses import dataclass

from services.research.bylines import names_in
from services.research.line import Line

_FIELD = re.compile(
    r"(?P<name>fra|frå|från|from|emne|subject|ämne|sendt|sent|skickat|dato|date|til|till|to|kopi|cc|bcc"
    r"|blindkopi|vedlegg|attachments?|svar til|reply-to|viktighet|importance):[ \t]*(?P<value>.*)",
    re.IGNORECASE,
)
_FROM, _SUBJECT, _SENT = (
    frozenset(("fra", "frå", "från", "from")),
    frozenset(("emne", "subject", "ämne")),
    frozenset(("sendt", "sent", "skickat", "dato", "date")),
)
_REPLY = re.compile(r"(?:(?:sv|vs|re|fwd?|vb|aw|ang|antw|tr)(?:\[\d+\])? ?: ?)+", re.IGNORECASE)
_SCREENED = re.compile(r"\[(?:external|ext|ekstern|extern|spam)\]\s*", re.IGNORECASE)  # what a mail server puts in
_ADDRESS = re.compile(r"\s*[<\[(].*|\S+@\S+")
_LEAST_FIELDS = 3
_HEAD_LINES = 10


@dataclass(frozen=True)
class MailHead:
    """What a mail's head says, and which lines it is."""

    subject: str | None
    sender: str | None
    sent: str | None
    positions: tuple[int, ...]


def read_mail_head(lines: list[Line]) -> MailHead | None:
    """The head of the mail that the paste begins with, or None where it is no mail."""
    values: dict[str, str] = {}
    positions: list[int] = []
    for position, line in enumerate(lines[:_HEAD_LINES]):
        found = _FIELD.fullmatch(line.text)
        if found is None:
            if positions:
                break
            continue
        values.setdefault(found.group("name").lower(), found.group("value").strip())
        positions.append(position)
    if len(positions) < _LEAST_FIELDS or not (values.keys() & _FROM):
        return None
    sender = _value(values, _FROM)
    names = names_in(_ADDRESS.sub("", sender).strip(" \"'")) if sender else []
    subject = _value(values, _SUBJECT) or _line_above(lines, positions[0])
    return MailHead(
        without_reply_marks(subject) if subject else None,
        names[0] if names else None,
        _value(values, _SENT),
        tuple(positions),
    )


def without_reply_marks(subject: str) -> str:
    """A subject without SV:, Re: and their like."""
    subject = _SCREENED.sub("", subject)
    return _REPLY.sub("", subject, count=1).strip() if _REPLY.match(subject) else subject.strip()


def _value(values: dict[str, str], names: frozenset[str]) -> str | None:
    return next((values[name] for name in values if name in names and values[name]), None)


def _line_above(lines: list[Line], begin: int) -> str | None:
    """What stands right above the fields: mail pages show the subject there."""
    return lines[begin - 1].text if begin else None
