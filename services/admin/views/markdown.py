"""Markdown from anywhere as HTML that can do nothing: no HTML of its own, no images, links of the web alone."""

from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markupsafe import Markup, escape

_SCHEMES = {"http", "https", "mailto"}
LONGEST_ADDRESS = 2000


class _Renderer(RendererHTML):
    """Headings two steps lower, since the page has its own; links that give nothing away; images as their words."""

    def heading_open(self, tokens: Any, number: int, _options: Any, _env: Any) -> str:
        return f"<h{_level(tokens[number].tag)}>"

    def heading_close(self, tokens: Any, number: int, _options: Any, _env: Any) -> str:
        return f"</h{_level(tokens[number].tag)}>\n"

    def link_open(self, tokens: Any, number: int, options: Any, env: Any) -> str:
        tokens[number].attrs = {"href": tokens[number].attrs.get("href", ""), "rel": "noopener nofollow ugc"}
        return self.renderToken(tokens, number, options, env)

    def image(self, tokens: Any, number: int, _options: Any, _env: Any) -> str:
        words = tokens[number].content or str(tokens[number].attrs.get("src", ""))
        return f"<span>[{escape(words)}]</span>"

    def td_open(self, _tokens: Any, _number: int, _options: Any, _env: Any) -> str:
        return "<td>"  # an alignment would be a style, which the policy refuses

    def th_open(self, _tokens: Any, _number: int, _options: Any, _env: Any) -> str:
        return "<th>"

    def fence(self, tokens: Any, number: int, _options: Any, _env: Any) -> str:
        return f"<pre><code>{escape(tokens[number].content)}</code></pre>\n"


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer).enable("table")


def render_markdown(text: str) -> Markup:
    """The text as HTML."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 - made by the renderer above from escaped text


def is_harmless(address: str) -> bool:
    """Whether a link may lead there: the web or a mail, written out; nothing that stays on this site or runs."""
    try:
        scheme = urlsplit(address).scheme.lower()
    except ValueError:
        return False
    return scheme in _SCHEMES and len(address) <= LONGEST_ADDRESS


def _level(tag: str) -> int:
    return min(int(tag[1]) + 2, 6)


_MARKDOWN.validateLink = is_harmless  # type: ignore[method-assign, assignment]
