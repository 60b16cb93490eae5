"""Lines that subtitles open or close with, and that recognizers write where nobody speaks.

As `guards.words_of` writes them: lower case, without punctuation. Seen in the reports of users of Whisper in these
languages; only a short segment that begins with one is suspected, and only for a second reason it is dropped.
"""

_NORWEGIAN = (
    "teksting av",
    "tekstet av",
    "teksta av",
    "undertekster av",
    "undertekst av",
    "undertekster fra",
    "norske tekster av",
    "norsk tekst av",
    "oversatt av",
    "takk for at du så på",
    "takk for at dere så på",
    "takk for at du så med",
    "takk for at dere så med",
    "takk for at du ser på",
    "takk for at de så på",
    "takk for at du såg på",
    "takk for at de såg på",
)
_DANISH = (
    "danske tekster af",
    "tekster af",
    "tekstning af",
    "tekstet af",
    "undertekster af",
    "oversat af",
    "tak for at du så med",
    "tak for at i så med",
    "tak fordi du så med",
    "tak fordi i så med",
)
_SWEDISH = (
    "undertexter av",
    "undertexter från",
    "undertextning av",
    "textning av",
    "textat av",
    "svensktextning",
    "översatt av",
    "översättning av",
    "tack för att du tittade",
    "tack för att ni tittade",
    "tack för att du har tittat",
    "tack för att ni har tittat",
)
_ENGLISH = (
    "subtitles by",
    "subtitled by",
    "subtitling by",
    "captions by",
    "captioned by",
    "captioning by",
    "closed captions by",
    "translated by",
    "transcribed by",
    "transcript by",
    "thanks for watching",
    "thank you for watching",
    "thank you so much for watching",
)
_GERMAN = (
    "untertitel von",
    "untertitel der",
    "untertitel im auftrag",
    "untertitelung",
    "vielen dank fürs zuschauen",
    "danke fürs zuschauen",
    "copyright wdr",
    "copyright ndr",
)
_FINNISH = (
    "tekstitys",
    "tekstittänyt",
    "suomennos",
    "suomentanut",
    "kiitos kun katsoit",
    "kiitos että katsoit",
    "kiitos katsomisesta",
)

CREDITS: tuple[str, ...] = (*_NORWEGIAN, *_DANISH, *_SWEDISH, *_ENGLISH, *_GERMAN, *_FINNISH)
# Who makes subtitles; nobody else says these names.
NAMES: tuple[str, ...] = (
    "nicolai winther",
    "ai media",
    "amara org",
    "btistudios",
    "svensktextning nu",
    "scandinavian text service",
    "opensubtitles",
)
