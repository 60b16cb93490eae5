"""What a model answers about a transcript. Whether it was said is checked elsewhere."""

import msgspec

from openrouter_client.answer_form import AnswerForm

BlockReference = str | int


class ChapterAnswer(msgspec.Struct, frozen=True):
    start_block: BlockReference
    title: str


class PersonAnswer(msgspec.Struct, frozen=True):
    name: str
    role: str | None = None
    is_guest: bool = True
    blocks: tuple[BlockReference, ...] = ()


class QuoteAnswer(msgspec.Struct, frozen=True):
    block: BlockReference
    text: str


class Answer(msgspec.Struct, frozen=True):
    """The answer of any step; what was not asked for is empty."""

    title: str = ""
    title_alternatives: tuple[str, ...] = ()
    summary_short: str = ""
    summary_long: str = ""
    summary: str = ""
    keywords: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    chapters: tuple[ChapterAnswer, ...] = ()
    people: tuple[PersonAnswer, ...] = ()
    quotes: tuple[QuoteAnswer, ...] = ()


FORM = AnswerForm(Answer, must_say=frozenset({"title", "summary_short", "summary_long", "summary"}))
