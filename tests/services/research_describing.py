"""A worker of research_clip with the stand-in of OpenRouter, and a model that describes what it is shown."""

import json
import re
from typing import Any

from tests.databases import Database
from tests.openrouter_standin import ChatCall, StandIn
from tests.services.research_service import JOB_TYPE, Research
from tests.worker_processes import WorkerProcess, WorkerProcesses

PARAGRAPH = re.compile(r"^P(\d+) (.+)$", re.MULTILINE)
SUMMARY = {
    "nb": "Teksten handler om en båt som gikk på grunn, og om hva rederiet og kommunen mener at de må gjøre nå.",
    "nn": "Teksten handlar om ein båt som gjekk på grunn, og om kva reiarlaget og kommunen meiner at dei må gjere no.",
    "en": "The text is about a boat that ran aground, and about what the company and the council think they must do.",
}
TEXT = {
    "nb": (
        "Båten gikk på grunn ved Ørnes natt til søndag, og 1 250 liter diesel lakk ut i sjøen 🚢.",
        "Rederiet sier at ingen ble skadet, og at båten skal slepes til verftet i Bodø før helga.",
        "Ordfører Åse Li mener at kommunen bør få betalt for ryddingen, som har kostet 1,5 millioner kroner.",
    ),
    "nn": (
        "Båten gjekk på grunn ved Ørnes natt til sundag, og 1 250 liter diesel lak ut i sjøen 🚢.",
        "Reiarlaget seier at ingen vart skadde, og at båten skal slepast til verftet i Bodø før helga.",
        "Ordførar Åse Li meiner at kommunen bør få betalt for ryddinga, som har kosta 1,5 millionar kroner.",
    ),
    "en": (
        "The boat ran aground near Ørnes early on Sunday, and 1,250 litres of diesel leaked into the sea 🚢.",
        "The company says that nobody was hurt, and that the boat will be towed to the yard in Bodø this week.",
        "The mayor Åse Li thinks that the council should be paid for the cleaning, which has cost 1.5 million kroner.",
    ),
}
INVENTED = "Rederiet innrømmer at hele mannskapet var fulle på jobb da det smalt"


def describer(call: ChatCall) -> str:
    """A model that is right about most things, and invents a claim, a number and a person."""
    schema: dict[str, Any] = call.schema or {}
    paragraphs = PARAGRAPH.findall(call.text) or [("1", "")]
    language = next(
        name for name, word in (("nn", "nynorsk"), ("nb", "bokmål"), ("en", "English")) if word in call.text
    )
    number, words = paragraphs[0]
    everything: dict[str, Any] = {
        "title": words[:29],
        "author": "Kari Oppdikta",
        "published": None,
        "summary": SUMMARY[language],
        "topics": ["båt"],
        "entities": [{"name": "Åse Li", "type": "person"}, {"name": "Kari Oppdikta", "type": "person"}],
        "claims": [
            {"text": SUMMARY[language], "paragraph": f"P{number}", "quote": words},
            {"text": SUMMARY[language] + " Nei", "paragraph": "P2", "quote": INVENTED},
        ],
        "facts": [
            {
                "subject": "diesel",
                "predicate": "x",
                "value": value,
                "unit": "liter",
                "paragraph": f"P{n}",
                "quote": quote,
            }
            for n, quote in paragraphs[:8]
            if "diesel" in quote
            for value in ("1250", "1300")
        ],
        "quotes": [{"paragraph": f"P{paragraphs[-1][0]}", "quote": paragraphs[-1][1]}],
        "headings": [{"paragraph": f"P{paragraphs[-1][0]}", "title": "Til slutt"}],
    }
    return json.dumps({name: everything[name] for name in schema["properties"]}, ensure_ascii=False)


class Describing(Research):
    """A research worker with a model to ask."""

    def __init__(self, database: Database, processes: WorkerProcesses, standin: StandIn) -> None:
        super().__init__(database, processes)
        self.standin = standin
        standin.answers(describer)

    def start(self, **environ: str) -> WorkerProcess:
        settings = {
            "OPENROUTER_API_KEY": self.standin.key,
            "OPENROUTER_BASE_URL": self.standin.base_url,
            "OPENROUTER_PROFILE": "openrouter",
            "OPENROUTER_READ_SECONDS": "3",
        }
        return super().start(**{**settings, **environ})

    def clip(self, *paragraphs: str, **payload: Any) -> dict[str, Any]:
        """The result of one job."""
        result: dict[str, Any] = self.wait(self.enqueue(text="\n\n".join(paragraphs), **payload))["result"]
        return result

    @property
    def is_paused(self) -> bool:
        return self.database.value("select paused_at from job_type where name = %s", JOB_TYPE) is not None
