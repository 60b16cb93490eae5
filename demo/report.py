"""What the demo shows at its end: transcript, analysis, the row in SQL, how many of the words are right."""

import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

from demo.embedded_postgres import EmbeddedPostgres, installation
from demo.environment import inherited_environ

ROW = """\
select id, status, attempts || '/' || max_attempts as attempts, priority,
       round(extract(epoch from completed_at - started_at), 1) as seconds,
       result ->> 'language' as language, result ->> 'duration' as audio_seconds,
       result -> 'model' ->> 'name' as model, left(result ->> 'text', 60) || ' …' as text
  from job_queue where job_type = 'whisper_transcribe'"""


def show_transcript(text: str, notes: list[str]) -> None:
    """The text, and what its reader should know about it."""
    print("\nTranscript:\n")
    print(textwrap.fill(text.strip(), width=100, initial_indent="  ", subsequent_indent="  "))
    for note in notes:
        print(f"\n  Note: {note}")


NO_ANALYSIS = """
No titles, summary and chapters: no language model is at hand. Next: set one of these and run it again.
  OPENROUTER_API_KEY=sk-or-…                                     a key of OpenRouter
  OPENROUTER_BASE_URL=http://127.0.0.1:11434/v1 OPENROUTER_MODEL=…   a server of your own (Ollama, llama.cpp, vLLM)"""


def show_analysis(result: dict[str, Any]) -> None:
    """Titles, summary, chapters and quotes, with what they cost."""
    print(f"\nAnalysis:\n\n  {result['title'] or '(no title)'}")
    print(textwrap.fill(result["summary_short"] or "", width=100, initial_indent="  ", subsequent_indent="  "))
    for chapter in result["chapters"]:
        print(f"  {chapter['start_s']:8.1f} s  {chapter['title']}")
    for quote in result["quotes"]:
        print(f"  {quote['start_s']:8.1f} s  «{quote['text']}»")
    print(f"  {result['provenance']['model_used']}, {result['provenance']['cost_usd']} USD")


def show_row(postgres: EmbeddedPostgres, database: str, password: str) -> None:
    """Runs a SELECT with psql, as jobbko_reader."""
    print(f"\nThe row, in SQL:\n\n{textwrap.indent(ROW, '  ')}\n")
    login = {
        "PGHOST": postgres.host, "PGPORT": str(postgres.port), "PGDATABASE": database,
        "PGUSER": "jobbko_reader", "PGPASSWORD": password, "PGCLIENTENCODING": "UTF8",
    }  # fmt: skip
    subprocess.run(
        [str(installation() / "bin" / "psql"), "--no-psqlrc", "--expanded", "--pset=pager=off",
         "--set=ON_ERROR_STOP=1", "--command", ROW],
        env=inherited_environ() | login, check=True,
    )  # fmt: skip


def word_error_rate(expected: str, heard: str) -> float:
    """Share of the expected words that must be changed, added or left out to get what was heard."""
    wanted, found = words(expected), words(heard)
    row = list(range(len(found) + 1))
    for number, word in enumerate(wanted, start=1):
        diagonal, row[0] = row[0], number
        for place, other in enumerate(found, start=1):
            diagonal, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, diagonal + (word != other)),
            )
    return row[-1] / max(1, len(wanted))


def words(text: str) -> list[str]:
    """Lower-case words, without punctuation; titles spelled out as they are read."""
    spelled = re.sub(r"\bmr\b\.?", "mister", text.lower())
    return re.findall(r"[^\W_]+", spelled)


def sample_text(folder: Path) -> str:
    return (folder / "sample.txt").read_text()
