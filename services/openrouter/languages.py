"""Which language a transcript is in, and whether it is in one alone."""

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
    """The language of a transcript: by its words, which tell nynorsk from bokmål, else as it was said to be."""
    text = transcript.text
    size = max(LEAST_SAMPLE, -(-len(text) // SAMPLES))
    samples = {detect(text[start : start + size]).language for start in range(0, len(text), size)} - {None}
    found = detect(text).language
    told = (transcript.language or "").lower()
    return SpokenLanguage(found or _CODES.get(told, told) or None, is_mixed=len(samples) > 1)
