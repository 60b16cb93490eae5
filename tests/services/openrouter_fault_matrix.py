"""The rows of the fault matrix. Their order counts in one place: a connection is stale where a refusal left it open."""

from tests.openrouter_standin import faults as f
from tests.services.openrouter_fault_rows import (
    DAY,
    POEM,
    Row,
    asked_about_what_was_wrong,
    asked_for_another_format,
    completes,
    cost_came_from,
    dropped,
    ends,
    fails,
    has_clean_text,
    has_doubled_its_budget,
    hinted,
    invented_quote,
    is_flagged_as_unknown,
    kept_nothing_of_it,
    lowered_its_budget,
    names_the_model_that_answered,
    outage,
    repeated,
    says,
    split_the_transcript,
    spoiled_title,
    strange_chapters,
    waits,
    with_fields,
)

SHORT = (4.9, 11.0)  # a model that has just started answers after seconds
ENGLISH = (
    "In this episode they talk about why the ferries in the north are late so often, and what could be done about it. "
    "The people who live along the coast tell what it is like when the boat does not come."
)
NO_SCHEMA = "Invalid value for response_format: json_schema is not supported by this model"
NORMAL = completes("nothing at all")
STALE = completes("stale connection", f.stale_connection(), calls=2)

PERMANENT = (
    ends("400 invalid request", "config", f.refused(400, error_type="invalid_request")),
    ends("400 model not found", "model_unavailable", f.refused(400, "no such model", "model_not_found")),
    ends("400 content policy", "refused", f.refused(400, error_type="content_policy_violation")),
    ends("403 moderation", "refused", f.moderated("violence")),
    ends("403 region", "policy_filtered", f.refused(403, error_type="region_restricted")),
    ends("404 no endpoints", "model_unavailable", f.refused(404, "No endpoints found", "no_endpoints")),
    ends(
        "404 filtered by our own wishes",
        "policy_filtered",
        f.refused(
            404,
            "No endpoints found that match your data policy",
            "constraint_filtered",
            availability={"code": "constraint_filtered", "retryable": False, "excluded_by": ["data_collection"]},
        ),
        look=says("data_collection"),
    ),
    ends("404 data policy", "policy_filtered", f.refused(404, "data policy", "privacy_restricted")),
    ends("409", "config", f.refused(409)),
    ends("410", "model_unavailable", f.refused(410)),
    ends("412", "config", f.refused(412)),
    ends("413", "too_long", f.refused(413)),
    ends("422", "config", f.refused(422, error_type="unprocessable")),
    ends("503 that says it is of no use to retry", "model_unavailable", f.overloaded(retryable=False)),
    ends("a redirect", "config", f.redirected()),
    ends("a refusal", "refused", f.refuses(), billed=1, look=says("can't help")),
    ends("a content filter", "refused", f.content_filter(), billed=1, look=says("SAFETY")),
    ends("200 with an error that is ours", "config", f.only_an_error(400, "Bad value", error_type="invalid_request")),
    ends(
        "prompt too long in every plan",
        "too_long",
        *repeated(f.refused(400, error_type="context_length_exceeded")),
        calls=4,  # the whole, all of it as one part, its first half, a quarter: less cannot be divided
    ),
    ends("prose twice", "invalid_output", *repeated(f.content(POEM)), calls=2, billed=2),
    ends("5 MB of nothing, twice", "invalid_output", *repeated(f.huge(5)), calls=2, billed=2),
    ends("no schema in any format", "config", *repeated(f.upstream(400, NO_SCHEMA)), calls=2),
)
ORDINARY = (
    fails("408", "timeout", f.refused(408, error_type="timeout")),
    fails("504", "timeout", f.refused(504, error_type="timeout")),
    fails("524 as a page of HTML", "timeout", f.edge_page(524)),
    fails("500", "upstream", f.refused(500, error_type="server")),
    fails("no choice", "empty_output", f.no_choices(), wait=SHORT),
    fails("choices null", "empty_output", f.no_choices("null"), wait=SHORT),
    fails("content null", "empty_output", f.empty(None), wait=SHORT, billed=1),
    fails("content empty", "empty_output", f.empty(""), wait=SHORT, billed=1),
    fails("content of blanks", "empty_output", f.empty("  \n "), wait=SHORT, billed=1),
    fails("an answer that gives no reason to end", "upstream", f.content("{", finish_reason=None), billed=1),
    fails("stream that ends early", "transport", f.ends_early(), billed=1, look=is_flagged_as_unknown),
    fails("connection that breaks", "transport", f.breaks(), billed=1, look=is_flagged_as_unknown),
    fails("connection closed unanswered", "transport", f.closes_unanswered(), look=is_flagged_as_unknown),
    fails("silence", "timeout", f.silent(), billed=1, look=is_flagged_as_unknown),
    fails("silence halfway", "timeout", f.silent_halfway(), billed=1, look=is_flagged_as_unknown),
    fails("9 MB", "upstream", *repeated(f.huge(9)), billed=1, second="retry"),
)
OUTAGES = (
    outage("429 without a hint", f.rate_limited()),
    outage("429 with a hint of garbage", f.rate_limited(retry_after="soon")),
    outage("502", f.refused(502, error_type="provider_unavailable")),
    outage("502 as a page of HTML", f.edge_page(502)),
    outage("503", f.overloaded()),
    outage("529", f.refused(529, error_type="provider_overloaded")),
    outage("a status nobody has listed", f.refused(599)),
    outage("upstream's words", f.upstream(502, "CUDA error on node 7"), look=says("CUDA error")),
    outage("200 with an error alone", f.only_an_error(429)),
    outage("the same as an event", f.only_an_error(429, is_event=True)),
    outage("200 with nulls and an error", f.all_null(502, "Provider died"), look=says("Provider died")),
    outage("200 that died halfway", f.died_halfway(), look=kept_nothing_of_it),
    outage("the same with a code in words", f.died_halfway(stream_code="server_error"), look=kept_nothing_of_it),
)
HINTS = (
    waits("Retry-After in seconds", hinted(120), lambda: f.rate_limited(retry_after="120")),
    waits("Retry-After as a date", hinted(600, set_before=30), lambda: f.rate_limited_until_date(600)),
    waits("Retry-After of a day", (DAY - 5, DAY + 1), lambda: f.rate_limited(retry_after="86400")),
    waits("Retry-After of a month", (DAY - 5, DAY + 1), lambda: f.rate_limited(retry_after="2592000")),
    waits("retry-after-ms", hinted(90), lambda: f.retry_after_ms(90_000)),
    waits("X-RateLimit-Reset in milliseconds", hinted(300, set_before=30), lambda: f.reset_header(300)),
    waits("the reset in the metadata alone", hinted(3000, set_before=30), lambda: f.free_models_per_day(3000)),
    waits("availability.retry_after", hinted(200), lambda: f.overloaded(retry_after=200, retryable=True)),
    waits("502 with a hint", hinted(60), lambda: f.refused(502, headers={"Retry-After": "60"})),
    waits("402 for calls in flight", hinted(40), lambda: f.in_flight_budget("40")),
    waits("gzip", hinted(1), lambda: f.gzipped()),
    waits(
        "200 with an error and a hint",
        hinted(150),
        lambda: f.only_an_error(429, availability={"retryable": True, "retry_after": 150}),
    ),
)
SECOND_TRIES = (
    completes("answer cut off", f.cut_off(), calls=2, billed=2, look=has_doubled_its_budget),
    completes("reasoning ate the budget", f.only_reasoning(), calls=2, billed=2, look=has_doubled_its_budget),
    completes(
        "400 for too small a budget",
        f.refused(400, error_type="max_tokens_exceeded"),
        calls=2,
        look=has_doubled_its_budget,
    ),
    completes("402 that affords less", f.affords(7500, 3000), calls=2, look=lowered_its_budget),
    completes("schema not supported", f.upstream(400, NO_SCHEMA), calls=2, look=asked_for_another_format),
    completes("prose", f.content(POEM), calls=2, billed=2, look=asked_about_what_was_wrong),
    completes("a field missing", f.with_document("no title", lambda said: {**said, "title": None}), calls=2, billed=2),
    completes(
        "prompt too long",
        f.refused(400, error_type="context_length_exceeded"),
        calls=3,
        billed=2,
        look=split_the_transcript,
    ),
    completes(
        "another language", with_fields("English", summary_short=ENGLISH[:120], summary_long=ENGLISH), calls=2, billed=2
    ),
)
WHOLE = (
    completes("fenced", f.fenced()),
    completes("in prose", f.in_prose()),
    completes("trailing comma", f.trailing_comma()),
    completes("NUL, half a surrogate pair, bidi", f.with_document("spoiled", spoiled_title), look=has_clean_text),
    completes("invented quote", f.with_document("invented", invented_quote), look=dropped("quotes")),
    completes(
        "chapters out of range and order",
        f.with_document("strange", strange_chapters),
        look=dropped("chapters", "unknown_block", "not_ascending"),
    ),
    completes("another model", f.answered_by("openai/gpt-small"), look=names_the_model_that_answered),
    completes("usage null", f.usage("null", None), look=cost_came_from("generation")),
    completes(
        "usage zero",
        f.usage("zero", {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0}),
        look=cost_came_from("generation"),
    ),
    completes("own provider key", f.byok(0.0125, 0.0005), look=cost_came_from("provider", "0.0130")),
    completes(
        "upstream cost named beside",
        f.usage("both", {"cost_details": {"upstream_inference_cost": 9.9}}),
        look=cost_came_from("provider"),
    ),
    completes("comments", f.many_comments()),
    completes("data without a space", f.tight_lines()),
    completes("split characters", f.split_characters()),
    completes("slow drip", f.dripping(0.03)),
)
WAITING = (*OUTAGES, *HINTS)
ROWS: tuple[Row, ...] = (NORMAL, PERMANENT[0], STALE, *PERMANENT[1:], *ORDINARY, *WAITING, *SECOND_TRIES, *WHOLE)
