"""Addresses without what only follows the reader about: campaign and click parameters, session marks."""

import re
from urllib.parse import urljoin, urlsplit

_TRACKING = re.compile(
    r"(?:utm|mc|hsa|pk|mtm|matomo|piwik|ns|stm|vero|oly|itm|fb|sfmc|__hs|_hs)_\w+|utm\w*|(?:fbc|gc|dc|yc"
    r"|ttc|twc|irc|scc|msclk|gcls|wick)(?:lid|kid|id)|[gw]braid|gclsrc"
    r"|igshid|igsh|si|epik|_ga|_gl|_hsenc|_hsmi|hsctatracking|mkt_tok|spm|scm|s_cid|ncid|cmpid"
    r"|campaign_?id|ref_src|ref_url|share_?id|share_?source"
    r"|tracking_?id|xtor|dicbo|guccounter|guce_referrer\w*|smid|smtyp|ito|rcm|__twitter_impression"
    r"|phpsessid|jsessionid|li_fat_id|elqtrack\w*"
    r"|sc_campaign|sc_channel|trk|trkcampaign|__s|ck_subscriber_id|bhid|et_rid|emci|emdi|ceid|mibextid"
    r"|rdid|wprov|algo_pvid|at_medium|at_campaign|wt_mc|wt\.mc_id|cx_\w+",
    re.IGNORECASE,
)
ADDRESS = re.compile(r"https?://[^\s<>\"'«»“”‘’`\\^{}|]{1,2000}", re.IGNORECASE)
_CODE_HOSTS = re.compile(
    r"https?://(?:[\w-]+\.)*(?:github|gitlab|codeberg|bitbucket)\.", re.IGNORECASE
)  # ref is a branch there
_CLOSING = ".,;:!?…*_"
_PAIRS = {")": "(", "]": "["}
_HEX_FRAGMENT = re.compile(r"#(?::~:text=|xtor=|utm_|ref=|fbclid=|Echobox=)", re.IGNORECASE)


def clean_address(address: str) -> str:
    """The address without tracking parameters; everything else stays as it is, order and escapes included."""
    base, sign, fragment = address.partition("#")
    if sign and _HEX_FRAGMENT.match(sign + fragment):
        sign = fragment = ""
    path, question, query = base.partition("?")
    if not question:
        return base + sign + fragment
    is_code = _CODE_HOSTS.match(path) is not None
    kept = [part for part in query.split("&") if part and not _is_tracking(part.partition("=")[0], is_code=is_code)]
    return path + ("?" + "&".join(kept) if kept else "") + sign + fragment


def _is_tracking(name: str, *, is_code: bool) -> bool:
    return _TRACKING.fullmatch(name) is not None or (name == "ref" and not is_code)


def addresses_in(text: str) -> list[tuple[int, int]]:
    """Where addresses stand in a text, without the sentence's own signs behind them."""
    if "://" not in text:
        return []
    return [(found.start(), found.start() + len(_without_end(found.group()))) for found in ADDRESS.finditer(text)]


def clean_addresses(text: str) -> str:
    """The text with clean addresses."""
    pieces, position = [], 0
    for start, end in addresses_in(text):
        pieces += [text[position:start], clean_address(text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def web_address(address: str, base: str | None) -> str | None:
    """A link's address as a whole one; None for what is no web page (javascript:, #place, other schemes)."""
    address = address.strip()
    if not address or address.startswith("#") or len(address) > 2000:
        return None
    try:
        whole = urljoin(base, address) if base else address
        parts = urlsplit(whole)
        if parts.scheme not in ("http", "https") or not parts.hostname or any(sign.isspace() for sign in whole):
            return None
    except ValueError:
        return None
    return clean_address(whole)


def _without_end(address: str) -> str:
    while address and (
        address[-1] in _CLOSING
        or (address[-1] in _PAIRS and address.count(address[-1]) > address.count(_PAIRS[address[-1]]))
    ):
        address = address[:-1]
    return address
