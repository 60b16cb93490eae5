"""What a paste is: a web page, a fragment of one from a clipboard, Markdown, text of a PDF, or plain text."""

import re
from typing import Literal

from openrouter_client.pattern_parts import holds, needed

PasteKind = Literal["html", "fragment", "markdown", "plain", "pdf"]

_HEAD = 4000  # characters that are looked at for the start of a page
_PAGE = re.compile(r"<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>]", re.IGNORECASE)
_CLIPBOARD = re.compile(r"<!--\s?StartFragment|^\s*Version:\d\.\d\s+StartHTML:|docs-internal-guid", re.IGNORECASE)
_FIRST_TAG = re.compile(
    r"\s*(?:Version:\d\.\d\s+StartHTML:|<(?:!doctype|!--|html|head|meta|body|div|p|span|table|ul|ol|li|h[1-6]|a|b|i|em"
    r"|strong|article|section|main|header|nav|font|style|blockquote|pre)\b)",
    re.IGNORECASE,
)
_CLOSING_TAG = re.compile(r"</[a-z][a-z0-9]*\s*>", re.IGNORECASE)
_LEAST_TAGS = 2
# Signs of Markdown. Two of them make it: each for itself stands in texts that are none.
_MARKDOWN_SIGNS = tuple(
    (needed(pattern), re.compile(pattern, re.MULTILINE))
    for pattern in (
        r"\A\s*---\n(?:[\w-]+:.*\n|[ \t]+.*\n){1,60}---\n",
        r"(?:\A|\n\n)#{1,6} \S",
        r"(?<!\w)!?\[[^\[\]\n]{1,300}\]\((?:https?://|/|#|mailto:)[^\s()]{1,1000}\)",
        r"^(?:```|~~~)\w*$",
        r"(?<![*\w])\*\*[^*\s\n][^*\n]{0,300}\*\*(?![*\w])",
        r"^\|?(?: ?:?-{3,}:? ?\|)+ ?:?-*:? ?\|?$",
        r"^\d{1,3}\. \[[ x]\] |^[-*] \[[ x]\] ",
    )
)
_LEAST_SIGNS = 2
_BROKEN_WORD = re.compile(r"[^\W\d_]{2}[-\u00ad]\n *[a-zæøåäö]")
_BROKEN_ENDS, _LEAST_BROKEN_WORDS = ("-\n", "\u00ad\n"), 3
_SAMPLE = 200_000


def kind_of_page(html: str) -> PasteKind:
    """Whether HTML is a whole page or a fragment."""
    head = html[:_HEAD]
    if _CLIPBOARD.search(head):
        return "fragment"
    return "html" if _PAGE.search(head) else "fragment"


def kind_of_text(text: str) -> PasteKind:
    """What pasted text is. Line ends are \\n alone."""
    if _FIRST_TAG.match(text):
        tags = _CLOSING_TAG.finditer(text)
        if sum(1 for _ in zip(range(_LEAST_TAGS), tags, strict=False)) == _LEAST_TAGS:
            return kind_of_page(text)
    if "\f" in text.strip():
        return "pdf"
    sample = text[:_SAMPLE]
    if sum(1 for needs, sign in _MARKDOWN_SIGNS if holds(needs, sample) and sign.search(sample)) >= _LEAST_SIGNS:
        return "markdown"
    broken = _BROKEN_WORD.finditer(sample) if any(end in sample for end in _BROKEN_ENDS) else ()
    if sum(1 for _ in zip(range(_LEAST_BROKEN_WORDS), broken, strict=False)) == _LEAST_BROKEN_WORDS:
        return "pdf"
    return "plain"
