"""What a worker that asks a language model reads from its environment, beside the settings of every worker.

The key is optional: without one, a worker runs and says that it cannot ask. A server of one's own (profile `generic`)
may need none. The key is stripped and checked here, because a blank or a line break inside it would come back in the
HTTP library's own error text.
"""

import dataclasses
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import SplitResult, urlsplit

from sidelinja_jobs import SettingsError
from sidelinja_jobs.settings import setting

OPENROUTER_HOST = "openrouter.ai"
DEFAULT_BASE_URL = f"https://{OPENROUTER_HOST}/api/v1"
DEFAULT_MODEL = "google/gemini-2.5-flash"
PROFILES = ("auto", "openrouter", "generic")
EFFORTS = ("none", "minimal", "low", "medium", "high", "unset")
PRICE_LIMIT = 10_000  # USD per million tokens: far above any model, low enough to catch a wrong unit
BUDGET_LIMIT = 1_000_000


@dataclass(frozen=True, repr=False)
class ClientSettings:
    """Settings of the calls to a language model. Money is USD."""

    api_key: str | None = setting(
        "OPENROUTER_API_KEY",
        default=None,
        secret=True,
        empty_file_is_unset=True,  # in the stack the file is there from the start, empty until `make key`
        help="without it nothing is asked",
    )
    base_url: str = setting("OPENROUTER_BASE_URL", default=DEFAULT_BASE_URL, help="any OpenAI-compatible server")
    profile: str = setting(
        "OPENROUTER_PROFILE", default="auto", choices=PROFILES, help="auto = openrouter by its host name, else generic"
    )
    model: str = setting("OPENROUTER_MODEL", default="", help=f"{DEFAULT_MODEL}, unless the server is one's own")
    fallback_models: str = setting(
        "OPENROUTER_FALLBACK_MODELS", default="", help="comma list; whichever answers is billed"
    )
    context_tokens: int = setting(
        "OPENROUTER_CONTEXT_TOKENS",
        default=0,
        minimum=0,
        maximum=100_000_000,
        help="0 = as the catalogue says; 8192 for a server of one's own",
    )
    data_collection: str = setting(
        "OPENROUTER_DATA_COLLECTION", default="deny", choices=("deny", "allow"), help="providers that keep prompts"
    )
    zdr: bool = setting("OPENROUTER_ZDR", default=False, help="true: only providers that keep nothing; no cache")
    cache_seconds: int = setting(
        "OPENROUTER_CACHE_SECONDS",
        default=3600,
        minimum=0,
        maximum=86_400,
        help="how long OpenRouter may keep an answer, so that a crash does not pay twice; 0 = off",
    )
    max_price_prompt: Decimal = setting(
        "OPENROUTER_MAX_PRICE_PROMPT", default=Decimal(3), minimum=0, maximum=PRICE_LIMIT, help="USD per million tokens"
    )
    max_price_completion: Decimal = setting(
        "OPENROUTER_MAX_PRICE_COMPLETION",
        default=Decimal(15),
        minimum=0,
        maximum=PRICE_LIMIT,
        help="USD per million tokens",
    )
    reasoning: str = setting(
        "OPENROUTER_REASONING", default="low", choices=EFFORTS, help="how much a model thinks; unset = its own default"
    )
    job_budget_usd: Decimal = setting(
        "OPENROUTER_JOB_BUDGET_USD", default=Decimal(1), minimum=0, maximum=BUDGET_LIMIT, help="USD for one job"
    )
    day_budget_usd: Decimal = setting(
        "OPENROUTER_DAY_BUDGET_USD",
        default=Decimal(5),
        minimum=0,
        maximum=BUDGET_LIMIT,
        help="USD a UTC day, all types",
    )
    type_day_budget_usd: Decimal | None = setting(
        "OPENROUTER_TYPE_DAY_BUDGET_USD", default=None, minimum=0, maximum=BUDGET_LIMIT, help="USD a UTC day, this type"
    )
    read_seconds: float = setting(
        "OPENROUTER_READ_SECONDS",
        default=180.0,
        minimum=1,
        maximum=1700,  # below the stall limit of the job types that ask
        help="silence that ends a call",
    )
    total_seconds: float = setting(
        "OPENROUTER_TOTAL_SECONDS", default=900.0, minimum=1, maximum=86_400, help="longest call"
    )

    def __post_init__(self) -> None:
        """Raises SettingsError naming everything that is wrong. The key is stripped, the URL loses its last slash."""
        key = (self.api_key or "").strip()
        object.__setattr__(self, "api_key", key or None)
        object.__setattr__(self, "base_url", self.base_url.strip().rstrip("/"))
        found = (key_problem(key), *self._url_problems(), *self._model_problems())
        if problems := [problem for problem in found if problem]:
            raise SettingsError("settings: " + "; ".join(problems))

    def __repr__(self) -> str:
        shown = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        shown["api_key"] = "(hidden)" if self.api_key else None
        return f"ClientSettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def is_openrouter(self) -> bool:
        """Whether the server is OpenRouter (or is said to behave like it)."""
        if self.profile != "auto":
            return self.profile == "openrouter"
        return is_openrouter_host(_split(self.base_url).hostname)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.fallback_models.split(",") if name.strip())

    def _url_problems(self) -> list[str]:
        url = _split(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            return ["OPENROUTER_BASE_URL is not an http or https address; set it to one such as " + DEFAULT_BASE_URL]
        if url.username or url.password or url.query or url.fragment:
            return ["OPENROUTER_BASE_URL holds more than host and path; a key belongs into OPENROUTER_API_KEY"]
        if url.scheme == "http" and is_openrouter_host(url.hostname):
            return ["OPENROUTER_BASE_URL is http, which would send the key unencrypted; use https"]
        if self.profile == "generic" and is_openrouter_host(url.hostname):
            return ["OPENROUTER_PROFILE is generic, under which no budget holds; OpenRouter takes money: leave it out"]
        return []

    def _model_problems(self) -> list[str]:
        problems = [
            f"{env} holds {name!r}, expected a model's name without blanks"
            for env, names in (("OPENROUTER_MODEL", (self.model,)), ("OPENROUTER_FALLBACK_MODELS", self.fallbacks))
            for name in names
            if len(name) > 200 or any(letter.isspace() or not letter.isprintable() for letter in name)
        ]
        if self.model or self.is_openrouter:
            return problems
        return [*problems, "OPENROUTER_MODEL is not set; a server of one's own must be told which model to use"]


def is_openrouter_host(host: str | None) -> bool:
    """Whether a host name is OpenRouter's or one of its regions'."""
    return host is not None and (host == OPENROUTER_HOST or host.endswith("." + OPENROUTER_HOST))


def key_problem(key: str) -> str | None:
    """What is wrong with a key, without the key."""
    if all("!" <= letter <= "~" for letter in key):
        return None
    return "OPENROUTER_API_KEY is (hidden) and holds a blank, a line break or a letter outside ASCII; paste it again"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises when it is no number
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts
