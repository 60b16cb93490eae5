"""Settings and profile of the language model's client: the key is checked and never shown, servers are told apart."""

import pickle
from decimal import Decimal
from pathlib import Path

import pytest

from openrouter_client.profile import Profile, ProfileKind, Secret
from openrouter_client.settings import DEFAULT_MODEL, ClientSettings
from sidelinja_jobs import JobType, SettingsError, load_settings

KEY = "sk-or-v1-0123456789abcdef"
OLLAMA = "http://ollama:11434/v1"


def load(**environ: str) -> ClientSettings:
    return load_settings(ClientSettings, {f"OPENROUTER_{name}": text for name, text in environ.items()})


def profile(**environ: str) -> Profile:
    return Profile.from_settings(load(**environ))


def problem(**environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(**environ)
    return str(caught.value)


def test_nothing_set_means_openrouter_without_a_key() -> None:
    made = profile()

    assert (made.kind, made.model, made.key) == (ProfileKind.OPENROUTER, DEFAULT_MODEL, None)
    assert made.base_url == "https://openrouter.ai/api/v1"
    assert (made.data_collection, made.is_zdr, made.cache_seconds, made.fallbacks) == ("deny", False, 3600, ())
    assert not made.is_usable


def test_money_is_exact() -> None:
    settings = load(DAY_BUDGET_USD="0.1", JOB_BUDGET_USD="2", TYPE_DAY_BUDGET_USD="0.30")

    assert settings.day_budget_usd == Decimal("0.1")
    assert settings.type_day_budget_usd == Decimal("0.30")
    assert isinstance(settings.job_budget_usd, Decimal)
    for text in ("nan", "inf", "-1", "a lot", "1,5"):
        assert "OPENROUTER_DAY_BUDGET_USD" in problem(DAY_BUDGET_USD=text)


@pytest.mark.parametrize("text", [f" {KEY}", f"{KEY}\n", f"\r\n{KEY}\t\n", KEY])
def test_a_key_loses_the_blanks_around_it(text: str) -> None:
    made = profile(API_KEY=text)

    assert made.key is not None
    assert made.key.reveal() == KEY
    assert made.is_usable


def test_a_key_from_a_file_loses_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY} \n\n")

    assert load(API_KEY_FILE=str(tmp_path / "key")).api_key == KEY


def test_a_key_of_blanks_is_no_key() -> None:
    assert load(API_KEY=" \n ").api_key is None


@pytest.mark.parametrize("text", ["sk-or-v1-01234 56789", "sk-or-v1-01234\n56789", "sk-or-v1-«01234»", "sk-or\x00-v1"])
def test_a_damaged_key_is_refused_and_not_shown(text: str) -> None:
    message = problem(API_KEY=text)

    assert "OPENROUTER_API_KEY" in message
    assert "01234" not in message


def test_a_key_is_in_no_text_of_what_holds_it() -> None:
    settings = load(API_KEY=KEY)
    made = Profile.from_settings(settings)

    for shown in (repr(settings), str(settings), repr(made), str(made), f"{made.key}", f"{made.key!r}"):
        assert KEY not in shown
        assert "hidden" in shown
    assert "base_url='https://openrouter.ai/api/v1'" in repr(settings)
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://openrouter.ai/api/v1", ProfileKind.OPENROUTER),
        ("https://eu.openrouter.ai/api/v1/", ProfileKind.OPENROUTER),
        ("https://OpenRouter.AI/api/v1", ProfileKind.OPENROUTER),
        ("https://openrouter.ai.evil.example/v1", ProfileKind.GENERIC),
        ("https://notopenrouter.ai/v1", ProfileKind.GENERIC),
        (OLLAMA, ProfileKind.GENERIC),
        ("http://[::1]:8080/v1", ProfileKind.GENERIC),
    ],
)
def test_the_host_name_decides_what_is_spoken(url: str, kind: ProfileKind) -> None:
    assert profile(BASE_URL=url, MODEL="m").kind is kind


def test_the_profile_can_be_said_outright() -> None:
    assert profile(BASE_URL="http://127.0.0.1:9/v1", PROFILE="openrouter").kind is ProfileKind.OPENROUTER
    assert profile(BASE_URL="http://127.0.0.1:9/v1", PROFILE="generic", MODEL="m").kind is ProfileKind.GENERIC


def test_a_server_of_ones_own_needs_a_model_and_no_key() -> None:
    assert "OPENROUTER_MODEL is not set" in problem(BASE_URL=OLLAMA)
    made = profile(BASE_URL=OLLAMA, MODEL="llama3.2")

    assert made.is_usable
    assert (made.model, made.context_tokens) == ("llama3.2", 8192)
    assert profile(BASE_URL=OLLAMA, MODEL="m", CONTEXT_TOKENS="32000").context_tokens == 32_000


@pytest.mark.parametrize(
    "url",
    [
        "openrouter.ai/api/v1",
        "ftp://host/v1",
        "https://",
        "http://host:port/v1",
        "https://u:p@host/v1",
        "https://h/v1?k=1",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    assert "OPENROUTER_BASE_URL" in problem(BASE_URL=url, MODEL="m")


def test_a_key_in_the_address_is_not_shown() -> None:
    assert KEY not in problem(BASE_URL=f"https://user:{KEY}@host/v1", MODEL="m")


def test_openrouter_is_never_asked_without_encryption() -> None:
    assert "use https" in problem(BASE_URL="http://openrouter.ai/api/v1")


def test_all_problems_are_told_at_once() -> None:
    message = problem(API_KEY="a b", BASE_URL="nowhere", FALLBACK_MODELS="a b, c")

    for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "OPENROUTER_FALLBACK_MODELS"):
        assert name in message


def test_fallback_models_are_a_list_that_is_asked_for() -> None:
    assert profile(FALLBACK_MODELS=" a/b , c/d:free,, ").fallbacks == ("a/b", "c/d:free")


def test_zero_retention_turns_the_cache_off() -> None:
    """A cached answer would be kept at OpenRouter's edge."""
    assert profile(ZDR="true").cache_seconds == 0
    assert profile(CACHE_SECONDS="60").cache_seconds == 60


@pytest.mark.parametrize("url", ["https://openrouter.ai/api/v1", "https://eu.openrouter.ai/api/v1"])
def test_openrouter_is_not_taken_for_a_server_that_costs_nothing(url: str) -> None:
    assert "no budget holds" in problem(BASE_URL=url, PROFILE="generic", API_KEY=KEY, MODEL="a/b")
    assert "no budget holds" in problem(PROFILE="generic", MODEL="a/b")


def test_a_silence_that_is_waited_for_is_shorter_than_the_stall_limit() -> None:
    """Or the worker would end the call, which the server has answered by then."""
    limit = JobType.load(Path(__file__).parents[2] / "services" / "openrouter").stall_seconds

    assert "OPENROUTER_READ_SECONDS" in problem(READ_SECONDS=str(limit))
