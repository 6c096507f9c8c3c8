"""What every page shares: templates that show all text as text, the files they need, and what a browser may do."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from holdfast.types import CONTROLS

_HERE = "holdfast.server.inspector"
_MEDIA_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
# Nothing comes from elsewhere, nothing that stands in a page runs, and no other page shows this one inside of itself.
# A referrer of our own pages has to stay: without it a browser says `Origin: null` of our own forms.
SAFETY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_OBEYED = re.compile(rf"[{CONTROLS}\ud800-\udfff]")


def visible(text: str) -> str:
    """Return `text` with every character that a browser would obey, and not show, written out."""
    return _OBEYED.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n").replace("\r", "\n"))


def _show(value: object) -> object:
    """Make what a template prints visible; what is markup already was made of visible text."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _exact(text: str) -> Markup:
    """Return text for the value of a form's field: as it is, because it comes back."""
    return escape(text)


@cache
def templates() -> Environment:
    """Return the templates; all that they print is escaped, and a name that is not there is an error."""
    environment = Environment(
        loader=PackageLoader(_HERE), autoescape=True, undefined=StrictUndefined, finalize=_show, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["exact"] = _exact
    environment.globals["static"] = {name: one.address for name, one in static_files().items()}
    return environment


def draw(template: str, values: Mapping[str, Any]) -> str:
    """Return a page."""
    return templates().get_template(f"{template}.html").render(values)


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that pages need: its address changes with its bytes, so that a browser may keep it."""

    body: bytes
    media_type: str
    address: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return the files by name."""
    found = {}
    for file in (resources.files(_HERE) / "static").iterdir():
        stem, _, suffix = file.name.partition(".")
        body = file.read_bytes()
        mark = hashlib.sha256(body).hexdigest()[:12]
        found[file.name] = StaticFile(body, _MEDIA_TYPES[suffix], f"/static/{stem}.{mark}.{suffix}")
    return found
