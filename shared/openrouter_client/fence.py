"""Fences text that others wrote before a model reads it: it is material, whatever it says.

The fence is no defence by itself. What a model answers is checked against the text; here the text only loses what
would end the fence or play another part in the conversation, and gets a note when it seems to speak to the model.
Nothing is deleted for what it says: an episode may be about such texts.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from openrouter_client.pattern_parts import Needs, fold_case, holds, needed

# How chat templates mark the turns of a conversation; each family of models has its own.
_TEMPLATE_TOKEN = re.compile(
    r"<\|[^<>|\n]{0,60}\|>|<｜[^<>\n]{0,60}｜>|</?s>|<</?SYS>>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\]"
    r"|</?(?:start_of_turn|end_of_turn|bos|eos|pad|unk|think|system|user|assistant|document|documents|im_start|im_end"
    r"|tool_call|tool_response|function_calls)>",
    re.IGNORECASE,
)
_GAP = r"\W(?:[^.!?\n]{0,60}\W)?"  # inside one sentence
_LEAVE = (
    r"ignorer|ignorere|ignorér|se bort fra|sjå bort frå|glem|gløym|overse|oversjå|hopp over|tilsidesett|set til side"
    r"|sett til side|overstyr|ikke følg|ikkje følg|ikke bry deg om|ikkje bry deg om"
    r"|ignore|disregard|forget|override|bypass|do not follow|don't follow|stop following"
)
_ORDERS = (
    r"instruks\w*|instruction\w*|beskjeden?e?|beskjedane|reglene|reglane|retningslinj\w*|retningslin\w*|ledetekst\w*"
    r"|leietekst\w*|ordre\w*|oppgaven|oppgåva|systemmelding\w*|systemprompt\w*|prompts?|rules|guidelines|orders|task"
    r"|alt (?:som står )?(?:over|ovenfor|ovanfor|før)|everything above|all of the above"
    r"|previous (?:text|messages?|context)"
)
_MODEL = (
    r"språkmodell\w*|ki-modell\w*|ki-assistent\w*|ai-modell\w*|ai-assistent\w*|chatbot\w*|chatgpt|gemini|claude|gpt-?\d?"
    r"|language model|llm|ai (?:model|assistant|system)"
)
_ADDRESSES: tuple[tuple[Needs, re.Pattern[str]], ...] = tuple(
    (needed(pattern), re.compile(pattern, re.IGNORECASE))
    for pattern in (
        rf"\b(?:{_LEAVE})\b{_GAP}(?:{_ORDERS})\b",
        r"\b(?:nye|new) (?:instruks\w*|instruksjoner|instruksjonar|instructions?|ordre|orders)\s*:",
        r"\bdu er (?:nå|no) (?:en|ein|ei|ikke|ikkje)\b|\byou are now (?:a|an|the|not|in)\b",
        r"\b(?:fra|frå) (?:nå|no) av (?:skal|er|må) du\b|\bfrom now on,? you\b|\bheretter skal du (?:svare|oppføre)",
        r"\b(?:lat som|lat som om) du er\b|\boppfør deg som (?:en|ein|ei|om)\b|\bpretend (?:to be|you are|that you)\b",
        rf"\b(?:avslør|skriv ut|gjenta|gjenta ordrett|gjengi|vis|vis meg|reveal|print|repeat|output|show me){_GAP}"
        r"(?:systemmelding\w*|systemprompt\w*|system prompt|system message|ledetekst\w*|leietekst\w*|hidden prompt"
        r"|initial prompt|instruksjonene dine|instruksane dine|your instructions|your prompt)\b",
        rf"\b(?:kjære|hei|merknad til|melding til|beskjed til|til alle|dear|hello|attention|note to|message to)"
        r"\W{1,3}"
        rf"(?:deg som er |all |any |the )?(?:{_MODEL})\b",
        rf"\b(?:hvis|om|dersom|viss|if) (?:du|you) (?:er|are) (?:en |ein |a |an )?(?:{_MODEL})\b",
        rf"\b(?:{_MODEL}),? (?:skal|må|must|should|shall) (?:nå |no |now )?"
        r"(?:svare|skrive|gi|gje|answer|respond|write|say)\b",
        r"\bsvar (?:bare|kun|berre) (?:med|på)\b",
        r"\b(?:respond|answer|reply) only (?:with|in)\b|\bonly (?:output|respond)\b",
        r"\b(?:sett|set) (?:tittelen|sammendraget|samandraget|the title|the summary) (?:til|to)\b",
        r"\b(?:developer mode|jailbreak|utviklermodus|utviklarmodus|DAN mode)\b",
        r"^\W{0,4}(?:system|assistant|systemmelding)\s*:",
    )
)
_LONGEST_PIECE, _OVERLAP, _PART = 20_000, 300, 200_000


@dataclass(frozen=True)
class Fence:
    """The marker of one question. The text cannot hold it."""

    marker: str

    @property
    def opening(self) -> str:
        return f"<<<{self.marker}"

    @property
    def closing(self) -> str:
        return f"{self.marker}>>>"

    def wrap(self, text: str) -> str:
        """The text between its markers."""
        return f"{self.opening}\n{text}\n{self.closing}"


def fence_for(secret: str, text: str) -> Fence:
    """A marker that nobody can have put into the text who did not know `secret`, such as the job's id.

    The same secret and text give the same marker: a question that is asked again after a crash must be the same bytes.
    """
    for turn in range(1000):
        digest = hashlib.sha256(f"{turn}\n{secret}\n".encode() + text.encode("utf-8", "surrogatepass"))
        marker = f"TEXT-{digest.hexdigest()[:16]}"
        if marker not in text:
            return Fence(marker)
    raise ValueError("the text holds every marker that was tried")


def without_template_tokens(text: str) -> str:
    """The text without the marks of chat templates, also where taking one away would make another."""
    while (cleaned := _TEMPLATE_TOKEN.sub(" ", text)) != text:
        text = cleaned
    return text


def injection_suspected(text: str) -> bool:
    """Whether a text seems to speak to a model, in bokmål, nynorsk or English. A note for people, nothing more."""
    if _TEMPLATE_TOKEN.search(text):
        return True
    return any(_speaks_to_a_model(part) for part in _parts(text))


def _speaks_to_a_model(text: str) -> bool:
    folded = fold_case(text)
    lines, folded_lines = text.splitlines(), folded.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, folded_lines))]
    places = {words: list(_lines_with(words, folded, starts)) for words in {needs[0] for needs, _ in _ADDRESSES}}
    return any(
        holds(needs, folded_lines[number]) and any(address.search(piece) for piece in _pieces(lines[number]))
        for needs, address in _ADDRESSES
        for number in places[needs[0]]
    )


def _lines_with(words: Iterable[str], text: str, starts: list[int]) -> Iterator[int]:
    """The numbers of the lines that hold one of the words; `starts` of each line, and where the last one ends."""
    for word in words:
        place = text.find(word)
        while 0 <= place < len(text):
            number = bisect_right(starts, place) - 1
            yield number
            place = text.find(word, starts[number + 1])


def _parts(text: str) -> Iterator[str]:
    """Some lines at a time: folding takes several times the memory of what is folded."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _PART) + 1 or len(text)
        yield text[start:end]
        start = end


def _pieces(line: str) -> Iterator[str]:
    """A long line in overlapping pieces: one search must not hold up the thread that keeps the lease."""
    for start in range(0, max(1, len(line) - _OVERLAP), _LONGEST_PIECE - _OVERLAP):
        yield line[start : start + _LONGEST_PIECE]
