"""A model's own words: on one line, of bounded length, without addresses that the text does not hold."""

import re
import unicodedata

from openrouter_client.unicode_text import sound_text

_LONGEST = 20  # times its limit: so much of a text is looked at
_REST = r"[^\s<>«»\"]{1,500}"
_LABELS = r"(?:[\w-]{1,63}\.){1,8}"
_ADDRESS = re.compile(
    rf"(?:\b[a-z][a-z0-9+.-]{{1,20}}:)?//{_REST}|\b(?:mailto|tel|sms|javascript|data):(?=\S){_REST}|\bwww\.{_REST}"
    rf"|[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}|(?<![\w.]){_LABELS}[^\W\d_]{{2,24}}(?::\d{{1,5}})?/{_REST}"
    rf"|(?<![\w.]){_LABELS}(?:com|net|org|info|biz|io|ai|dev|app|xyz|site|shop|top|tv|co|link|click|eu|no|dk|uk|ru)\b",
    re.IGNORECASE,
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SPACING = re.compile(r"\s+")


class ModelWords:
    """Cleans texts of a model about one text, and counts the addresses that it takes out."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self.dropped_addresses = 0

    def line(self, text: str, limit: int) -> str:
        """The text on one line, cut at a word."""
        text = unicodedata.normalize("NFC", _INVISIBLE.sub("", sound_text(text[: _LONGEST * limit])))
        text = "".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in text)
        text = _SPACING.sub(" ", _ADDRESS.sub(self._address, text)).strip()
        if len(text) <= limit:
            return text
        end = text.rfind(" ", 0, limit)
        return text[: end if end > limit // 2 else limit - 1].rstrip(" ,;:–-") + "…"

    def lines(self, texts: tuple[str, ...], count: int, limit: int) -> list[str]:
        """The first `count` texts that say something, each once."""
        found: dict[str, str] = {}
        for text in texts:
            if line := self.line(text, limit):
                found.setdefault(line.casefold(), line)
        return list(found.values())[:count]

    def _address(self, found: re.Match[str]) -> str:
        if found.group().rstrip(".,;:!?)").casefold() in self._text:
            return found.group()
        self.dropped_addresses += 1
        return ""
