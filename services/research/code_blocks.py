"""Tells program text in a plain paste, so that it is neither joined nor taken for headings."""

import re

from services.research.line import Line

_CODE = re.compile(
    r"(?:def|class|async def) \w+.*:|(?:import|from) [\w.]+(?: import .*)?|(?:if|elif|while|for|with"
    r"|except|try|else|finally)\b.*:|(?:return|raise|yield|assert)\b(?! om| at| av).*[\w)\]}\"']|pass"
    r"|break|continue"
    r"|(?:const|let|var|function|public|private|static|void|int|using|namespace|package|#include"
    r"|export)\b.*[;{)(>=].*|.*[;{]|[)}\]]+[;,)]*|\$ \S.*|>>> .*|(?:sudo|pip|npm|git|docker|curl|cd|apt"
    r"|make) [\w./-].*"
    r"|(?:SELECT|INSERT|UPDATE|DELETE|CREATE|FROM|WHERE) .*|[\w.\[\]'\"]+ (?:[-+*/]?=|:=|==) \S.*"
    r"|[\w.]+\(.*\)[;:]?|@\w+(?:\(.*\))?|<\/?\w+[^>]*>.*|#!.*|// .*|/\*.*"
)
# Whatever fits that holds one of these signs, or begins with one of these words; most lines do neither.
_SIGNS = re.compile(r"[][(){}<>;:=$#@/]")
_WORDS = re.compile(
    r"(?:import|from|return|raise|yield|assert|pass|break|continue|sudo|pip|npm|git|docker|curl|cd|apt|make"
    r"|SELECT|INSERT|UPDATE|DELETE|CREATE|FROM|WHERE)\b"
)
_COPY = re.compile(r"(?:copy(?: code)?|copied!?|kopier(?: kode(?:n)?)?|kopiert!?)\Z", re.IGNORECASE)
_LANGUAGE = re.compile(
    r"(?:python|py|java|javascript|js|typescript|ts|shell|bash|sh|zsh|console|terminal|sql|html|css|json"
    r"|yaml|toml|xml|c|c\+\+|cpp|c#|go|rust|ruby|php|r|kotlin|swift|powershell|text|plaintext|ini"
    r"|dockerfile|diff|markdown)\Z",
    re.IGNORECASE,
)
_LEAST_LINES = 2
_PROSE = re.compile(r"[A-ZÆØÅ][a-zæøå]+,? [a-zæøå]+[ .,!?]")
_SENTENCE = re.compile(r"[A-ZÆØÅ][a-zæøå]+(?: [\wæøåÆØÅ,-]+){3,}[.!?]\Z")


def mark_code(lines: list[Line]) -> None:
    """Makes runs of program text code; the label and the button above them go."""
    position = 0
    while position < len(lines):
        line = lines[position]
        if not line.is_kept or line.kind == "code":
            position += 1
            continue
        below_button = _is_button(lines, position)
        if not below_button and not _is_code(line):
            position += 1
            continue
        start = position + 1 if below_button else position
        end = _end(lines, start, is_announced=below_button)
        if below_button or end - start >= _LEAST_LINES:
            for one in lines[start:end]:
                _make_code(one)
        if below_button:
            line.remove("tools", is_strong=True)
            if position and _LANGUAGE.match(lines[position - 1].text) and not line.has_gap:
                lines[position - 1].remove("tools", is_strong=True)
        position = max(end, position + 1)


def _is_button(lines: list[Line], position: int) -> bool:
    text = lines[position].text
    if text[:1] not in "cCkK" or _COPY.match(text) is None or position + 1 >= len(lines):
        return False
    above = lines[position - 1] if position else None
    return (above is not None and _LANGUAGE.match(above.text) is not None) or _is_code(lines[position + 1])


def _end(lines: list[Line], start: int, *, is_announced: bool) -> int:
    """Where a run of code ends: at a gap behind which no code stands, or at a line that is none."""
    end = start
    while end < len(lines):
        line = lines[end]
        if not line.is_kept or line.kind == "code":
            break
        if line.has_gap and end > start and not _is_code(line):
            break
        if (
            not is_announced
            and not _is_code(line)
            and not (end > start and line.indent and not _SENTENCE.match(line.text))
        ):
            break
        if is_announced and _PROSE.match(line.text) and not _is_code(line):
            break
        end += 1
    return end


def _is_code(line: Line) -> bool:
    if not _may_be_code(line.source) or len(line.text) > 400 or _SENTENCE.match(line.text):
        return False
    return _CODE.fullmatch(line.source) is not None


def _may_be_code(source: str) -> bool:
    return _SIGNS.search(source) is not None or _WORDS.match(source) is not None


def _make_code(line: Line) -> None:
    line.kind = "code"
    line.text = " " * line.indent + line.source.expandtabs(4)
