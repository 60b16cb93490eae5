"""Which language a transcript is in, and whether it is in one alone."""

from collections import Counter
from dataclasses import dataclass

from openrouter_client.language import detect
from services.openrouter.transcript import Transcript

SAMPLES = 8
LEAST_SAMPLE = 1500  # letters: a shorter one may be mistaken
_CODES = {"no": "nb", "nob": "nb", "nno": "nn", "nor": "nb", "eng": "en"}


@dataclass(frozen=True)
class SpokenLanguage:
    """`language` is None where nobody knows. `is_mixed`: stretches of the transcript are in different ones."""

    language: str | None
    is_mixed: bool


def spoken_language(transcript: Transcript) -> SpokenLanguage:
    """The language of a transcript: by its words, which tell nynorsk from bokmål, else as it was said to be.

    Most of its stretches decide. Taken together, a quarter in English would outweigh the rest: hardly a word of it is
    one in a neighbour of Norwegian, too.
    """
    text = transcript.text
    size = max(LEAST_SAMPLE, -(-len(text) // SAMPLES))
    samples = (detect(text[start : start + size]).language for start in range(0, len(text), size))
    votes = Counter(language for language in samples if language is not None)
    most = next((language for language, count in votes.items() if 2 * count > votes.total()), None)
    told = (transcript.language or "").lower()
    return SpokenLanguage(most or detect(text).language or _CODES.get(told, told) or None, is_mixed=len(votes) > 1)
