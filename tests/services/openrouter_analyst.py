"""What a good model would answer to the questions of openrouter_analyze: true to the transcript, in its language."""

import json
import re
from typing import Any

from tests.openrouter_standin import ChatCall

BLOCK = re.compile(r"^(B\d+) (?:\[[^\]]*\] )?(.+)$", re.MULTILINE)
SCHEMA_IN_PROMPT = re.compile(r"^JSON Schema:\n(\{.*\})$", re.MULTILINE)
NORWEGIAN = (
    "I denne episoden snakker de om hvorfor fergene i nord ofte er forsinket, og hva som skal til for at flere "
    "kommer fram i tide. De som bor langs kysten, forteller hvordan de har det når båten ikke går."
)


def analyst(call: ChatCall) -> str:
    """An answer to whatever step is asked."""
    return json.dumps(analysis(call), ensure_ascii=False)


def analysis(call: ChatCall) -> dict[str, Any]:
    fields = _asked_fields(call)
    blocks = BLOCK.findall(call.text)
    first, middle = (blocks[0], blocks[len(blocks) // 2]) if blocks else (("B1", ""), ("B1", ""))
    everything: dict[str, Any] = {
        "title": "Fergene som ikke kommer",
        "title_alternatives": ["Når båten ikke går"],
        "summary_short": "De snakker om hvorfor fergene i nord ofte er forsinket, og hva som kan gjøres med det.",
        "summary_long": NORWEGIAN,
        "summary": NORWEGIAN,
        "keywords": ["ferger", "kysten", "forsinkelser"],
        "topics": ["samferdsel"],
        "chapters": [{"start_block": first[0], "title": "Velkommen"}, {"start_block": middle[0], "title": "Om kysten"}],
        "people": [],
        "quotes": [{"block": first[0], "text": " ".join(first[1].split()[:12])}] if blocks else [],
    }
    return {name: everything[name] for name in fields}


def _asked_fields(call: ChatCall) -> list[str]:
    schema = call.schema
    if schema is None and (found := SCHEMA_IN_PROMPT.search(call.text)):
        schema = json.loads(found[1])
    return list((schema or {}).get("properties", ("title",)))
