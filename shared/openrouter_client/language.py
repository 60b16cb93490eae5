"""Which of the languages around Norwegian a text is in: nb, nn, da, sv or en.

Told by the small words that every sentence is made of, and by a few endings; no model, no tables from elsewhere. A word
counts the more, the fewer of the five languages have it. What no detector of a useful size can do, telling bokmål
from nynorsk, these words do best: they are what the two differ in. Measured: docs/decisions, language detector.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice

LANGUAGES = ("nb", "nn", "da", "sv", "en")
LEAST_CHARACTERS = 60  # a shorter text may be a name or a title, and is not judged
MOST_WORDS = 20_000  # a sample from all over the text is enough
MOST_LETTERS, PIECES = 200_000, 50  # of a longer text, so many pieces are read
LEAST_LEAD = 1.0  # less than one word that only the best language has: two are equally likely
LEAST_COVERAGE = 0.12  # share of known words; running text has 0.35 and more, another language's below 0.1
_PATTERN_WEIGHT = 0.5

_WORDS = {
    "nb": """
        og i er en et det den de på som til av for med at har var ikke om jeg du han hun vi dere seg sin sitt sine
        hva hvem hvor hvorfor hvordan hvilken hvilke når så da nå også bare noe noen ingen alle alt andre annet mange
        mye mer mest fra etter ut inn opp ned over under mellom mot uten før siden gjennom kan kunne skal skulle vil
        ville må måtte bli blir ble blitt være vært hadde få får fikk gjøre gjør gjorde gjort si sier sa sagt se ser
        så gå går gikk komme kommer kom tar tok ta gi gir ga meg deg henne ham oss dem min mitt mine din hans hennes
        vår våre deres denne dette disse slik slike selv egen eget egne men eller fordi hvis enn både hverken verken
        dag år tid dager første to tre fire fem ny nye nytt gammel god godt bra stor store liten små her der hit dit
        igjen aldri alltid ofte kanskje jo vel veldig ganske samme hele helt norsk norske blant flere hver hvert
        snakker forteller spør spørsmål mener tror vet følger handler kjent lytte lyttere gjest uke ukens sammen
        hjem mennesker arbeid viktig forskjellig vanskelig mulig egentlig tidligere utvikling utfordringer
        hverandre vise viser frem fram tross like ennå enda mens hos rundt langs tilbake penger barn mann kvinne
        gang ganger sted steder måte måten grunn del land kommune samfunn ifølge siste neste gjelder derfor dermed
        likevel nettopp nesten både jenter gutter mor far hjelp bruke bruker brukes brukt finne finnes ligger står
        legge legger sette setter fått gitt tatt sett kommet enkelte burde bør trenger prøver holde holder verden
        gjerne ellers snart lenge lang langt kort høy lav lett tung heller altså litt nok godt hvert annen begge
    """,
    "nn": """
        og i er ein eit ei det den dei på som til av for med at har var ikkje om eg du han ho vi me de dykk seg sin
        sitt sine kva kven kor kvar korleis kvifor når så då no òg også berre noko nokon nokre ingen alle alt andre
        anna mange mykje meir mest frå etter ut inn opp ned over under mellom mot utan før sidan gjennom kan kunne
        skal skulle vil ville må måtte bli blir vart vorte blei blitt vere vore hadde få får fekk gjere gjer gjorde
        gjort seie seier sa sagt sjå ser såg gå går gjekk kome kjem kom tek tok ta gje gjev gir gav meg deg henne
        oss dei min mitt mine din hans hennar vår våre deira denne dette desse slik slike sjølv eigen eige eigne men
        eller fordi dersom viss enn både korkje verken dag år tid dagar første to tre fire fem ny nye nytt gammal
        god godt bra stor store liten små her der hit dit att igjen aldri alltid ofte kanskje jo vel veldig ganske
        same heile heilt norsk norske blant fleire kvar kvart snakkar fortel spør spørsmål meiner trur veit følgjer
        handlar kjend lytte lyttarar gjest veke vekas saman heim menneske arbeid viktig ulik vanskeleg mogleg
        eigentleg tidlegare utvikling utfordringar difor høyrer høyre byrja brukar lagar held vere meine sidan
        kvarandre vise viser fram tross ennå enda medan hos rundt langs tilbake pengar barn mann kvinne gong gonger
        stad stader måte måten grunn del land kommune samfunn ifølgje siste neste gjeld derfor dermed likevel nettopp
        nesten jenter gutar mor far hjelp bruke bruker brukar brukast brukt finne finst ligg står legg set sett fått
        gitt gjeve teke kome enkelte burde bør treng prøver halde verda gjerne elles snart lenge lang langt kort høg
        låg lett tung heller altså litt nok annan begge tykkje ynskje ønskjer vert verte vore eingong ikkje saman
    """,
    "da": """
        og i er en et det den de på som til af for med at har var ikke om jeg du han hun vi i sig sin sit sine hvad
        hvem hvor hvorfor hvordan hvilken hvilke når så da nu også bare kun noget nogen nogle ingen alle alt andre
        andet mange meget mere mest fra efter ud ind op ned over under mellem mod uden før siden gennem kan kunne
        skal skulle vil ville må måtte blive bliver blev blevet være været havde få får fik gøre gør gjorde gjort
        sige siger sagde sagt se ser så gå går gik komme kommer kom tager tog tage give giver gav mig dig hende ham
        os dem min mit mine din dit hans hendes vores deres denne dette disse sådan selv egen eget egne men eller
        fordi hvis end både hverken dag år tid dage første to tre fire fem ny nye nyt gammel god godt stor store
        lille små her der hen igen aldrig altid ofte måske jo vel ganske samme hele helt dansk danske blandt flere
        hver hvert taler fortæller spørger spørgsmål mener tror ved følger handler kendt lytte lyttere gæst uge
        ugens sammen hjem mennesker arbejde vigtig forskellig vanskelig mulig egentlig tidligere udvikling
        udfordringer ligger lidt nok heller lige dog derfor altså
        hinanden vise viser frem trods ligesom endnu mens hos rundt langs tilbage penge børn barn mand kvinde gang
        gange sted steder måde måden grund del land kommune samfund ifølge sidste næste gælder dermed alligevel netop
        næsten piger drenge mor far hjælp bruge bruger bruges brugt finde findes står lægge lægger sætte sætter fået
        givet taget set kommet enkelte burde bør prøver holde holder verden gerne ellers snart længe lang langt kort
        høj lav let tung anden begge meget også skal synes slags
    """,
    "sv": """
        och i är en ett det den de på som till av för med att har var inte om jag du han hon vi ni sig sin sitt sina
        vad vem var varför hur vilken vilka när så då nu också bara något någon några ingen alla allt andra annat
        många mycket mer mest från efter ut in upp ner över under mellan mot utan före sedan genom kan kunde ska
        skall skulle vill ville måste bli blir blev blivit vara varit hade få får fick göra gör gjorde gjort säga
        säger sade sa sagt se ser såg gå går gick komma kommer kom tar tog ta ge ger gav mig dig henne honom oss dem
        dom min mitt mina din hans hennes vår våra deras denna detta dessa sådan själv egen eget egna men eller
        eftersom än både varken dag år tid dagar första två tre fyra fem ny nya nytt gammal god gott bra stor stora
        liten små här där hit dit igen aldrig alltid ofta kanske ju väl ganska samma hela helt svensk svenska bland
        flera varje talar berättar frågar fråga frågor menar tror vet följer handlar känd lyssna lyssnare gäst vecka
        veckans tillsammans hem människor arbete viktig olika svår möjligt egentligen tidigare utveckling utmaningar
        varandra visa visar fram trots ännu medan hos runt längs tillbaka pengar barn man kvinna gång gånger plats
        sätt grund del land kommun samhälle enligt sista nästa gäller därför därmed ändå nästan flickor pojkar mor
        far hjälp använda använder finns ligger står lägga lägger sätta fått gett tagit kommit enskilda borde bör
        behöver försöker hålla håller världen gärna annars snart länge lång kort hög låg lätt tung hellre alltså lite
    """,
    "en": """
        the of and a to in is was that for it as with his he be on by at have are this from had not or which she
        you were been has their an they will would there its one who what when where why how if than then them
        these those some more most can could should may might must do does did done but all any each other into
        about over after before between through during out up down her him our we your my me us i so no only very
        also just because while such own same new old good first two three years year time day people way life
        work world show host guest episode talks talk tells tell says said conversation discuss discusses discussed
        explores explain explains join joins week listen listeners story stories being here now many much well
        another again back both since still even under own other others take takes make makes made get gets got
        see seen come comes go goes going want wants need needs use used help think know things something always
    """,
}
# Of words that no list has: how languages spell and inflect. Each pattern stands for the languages that do so.
_PATTERNS = tuple(
    (re.compile(pattern), tuple(languages.split()))
    for pattern, languages in (
        (r"ä|ö", "sv"),
        (r"æ|ø", "nb nn da"),
        (r"..leg(e|t|are|ast)?$", "nn"),
        (r"..lig(t|e|ere|st|het|heten)?$", "nb da sv"),
        (r"..ane$|...heit|...inga(ne)?$|..iske?r?ane$", "nn"),
        (r"..ande$|..ingar$|..ast$|..are$|..ar$", "nn sv"),
        (r"...ene$", "nb"),
        (r"..ende$|..este$|..ere$", "nb da"),
        (r"..het(en|er|ene)?$", "nb sv"),
        (r"..hed(en|er|erne)?$|..erne$|..else(n|r)?$|..ede$|..erede?$|..eret$", "da"),
        (r"..else(n|r|ne)?$", "nb"),
        (r"sjon|^kj|^gj|^skj", "nb nn"),
        (r"..ert(e)?$|..erte$", "nb nn"),
        (r"..tion(en|er|ens)?$", "da sv"),
        (r"..ions?$|..ing$|..ly$|..ness$|..ed$|..ies$|th|^wh|..ous$|..able$", "en"),
        (r"..(orna|arna|erna|ade|or|ning)$", "sv"),
        (r"([kptmlns])\1$", "nb nn sv"),
        (r"^hv", "nb da"),
        (r"^kv", "nn"),
        (r"øy|ei", "nb nn"),
        (r"øj|ej|aa", "da"),
        (r"au", "nn nb"),
        (r"^af.|[^aeiouyæøå]skab", "da"),
        (r"^av.|skap", "nb nn sv"),
        (r"...a$", "nn nb sv"),
        (r"ck|x", "sv en"),
        (r"..nd$|..ld$", "da en"),
    )
)
_WORD = re.compile(r"[^\W\d_]+")
_SETS = {language: frozenset(words.split()) for language, words in _WORDS.items()}


@dataclass(frozen=True)
class Detection:
    """`language` is None where the text is too short, or two languages are equally likely."""

    language: str | None
    lead: float  # how far the second is behind; 1.6 is one word that no other language has
    coverage: float  # share of the words that the best language's list has


def detect(text: str) -> Detection:
    """The language of a text, from a sample of its words."""
    if sum(map(str.isalpha, islice(text, 4 * LEAST_CHARACTERS))) < LEAST_CHARACTERS * 0.6:
        return Detection(None, 0.0, 0.0)
    words = _sample(text)
    scores = _scores(words)
    best, second = sorted(LANGUAGES, key=lambda language: -scores[language])[:2]
    if scores[best] <= 0:
        return Detection(None, 0.0, 0.0)
    lead = scores[best] - scores[second]
    coverage = _coverage(words, best)
    is_sure = lead >= LEAST_LEAD and coverage >= LEAST_COVERAGE
    return Detection(best if is_sure else None, lead, coverage)


def is_language(text: str, wanted: str) -> bool:
    """Whether nothing speaks against the text being in that language. A text too short to tell is."""
    if len(text.strip()) < LEAST_CHARACTERS:
        return True
    found = detect(text)
    if found.language is not None:
        return found.language == wanted
    return _coverage(_sample(text), wanted) >= LEAST_COVERAGE


def is_near(text: str, wanted: str) -> bool:
    """Whether a text is not English where another language is wanted, nor the reverse; others are not told apart."""
    found = detect(text).language
    return found is None or (found == "en") == (wanted == "en")


def is_small_word(word: str) -> bool:
    """Whether a word is one of those that sentences are made of, and no name."""
    return any(word.casefold() in words for words in _SETS.values())


def _sample(text: str) -> Counter[str]:
    if len(text) > MOST_LETTERS:
        stride = len(text) // PIECES
        text = " ".join(text[place : place + MOST_LETTERS // PIECES] for place in range(0, stride * PIECES, stride))
    words = _WORD.findall(text.casefold())
    step = max(1, len(words) // MOST_WORDS)
    return Counter(words[::step])


def _coverage(words: Counter[str], language: str) -> float:
    known = sum(count for word, count in words.items() if word in _SETS[language])
    return known / max(1, words.total())


def _scores(words: Counter[str]) -> dict[str, float]:
    scores = dict.fromkeys(LANGUAGES, 0.0)
    for word, count in words.items():
        owners = [language for language in LANGUAGES if word in _SETS[language]]
        if owners:
            _add(scores, owners, count)
            continue
        for pattern, languages in _PATTERNS:
            if pattern.search(word):
                _add(scores, languages, count * _PATTERN_WEIGHT)
    return scores


def _add(scores: dict[str, float], owners: list[str] | tuple[str, ...], count: float) -> None:
    weight = math.log(len(LANGUAGES) / len(owners)) * count
    for language in owners:
        scores[language] += weight
