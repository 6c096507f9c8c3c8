"""What every page shares: templates, what a browser may do, who looks at it, and what they asked for."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request

from holdfast.errors import AccessError, InputError, quote_value
from holdfast.server.access import Caller
from holdfast.server.limits import Refused
from holdfast.text.quotes import WORTH
from holdfast.types import CONTROLS
from holdfast.values import dataclass

COOKIE = "holdfast_pages"
_KEY_BYTES = 32
# People who are signed in at a time; the one who signed in first has to do so again.
_MOST_SIGNED_IN = 1_000
# Read before anybody has signed in.
LONGEST_FORM = 65_536


class SignInCookies:
    """Who has shown a token: a browser keeps a random key for it, never the token. Ends with the server."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(_KEY_BYTES)
        self._tokens: OrderedDict[str, str] = OrderedDict()

    def begin(self, token: str) -> str:
        """Return the key that stands for a token from now on."""
        key = secrets.token_urlsafe(_KEY_BYTES)
        self._tokens[key] = token
        while len(self._tokens) > _MOST_SIGNED_IN:
            self._tokens.popitem(last=False)
        return key

    def end(self, key: str) -> None:
        """Forget a key."""
        self._tokens.pop(key, None)

    def token(self, request: Request) -> str:
        """Return the token that a browser's key stands for; empty when it has none that holds."""
        return self._tokens.get(request.cookies.get(COOKIE, ""), "")

    def proof(self, request: Request) -> str:
        """Return what a form of ours carries: another site's page cannot know it."""
        key = request.cookies.get(COOKIE, "")
        return hmac.new(self._secret, key.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def refuse_foreign(self, request: Request, form: Mapping[str, str]) -> None:
        """Refuse a form that is none of our own pages'.

        Raises:
            Refused: it came from elsewhere, or from a page of before the server was started.
        """
        origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
        site = request.headers.get("sec-fetch-site", "same-origin")
        if not host or urlsplit(origin).netloc != host or site != "same-origin":
            raise Refused(
                AccessError(f"this form was sent by {quote_value(origin or site)}; send it from the page itself"), 403
            )
        if not hmac.compare_digest(form.get("proof", "").encode(), self.proof(request).encode()):
            raise Refused(AccessError("this form is of an older page; go back, load it again, and repeat"), 403)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One look at one page: by whom, at whose memory, with which arguments."""

    caller: Caller
    path: str
    given: Mapping[str, str]
    user: str
    tenant: str | None
    proof: str

    @classmethod
    def of(cls, request: Request, caller: Caller, user: str, proof: str, given: Mapping[str, str]) -> PageRequest:
        """Return what a request asks for, held to what the caller may see.

        Raises:
            AccessError: it is not for this caller to see.
        """
        asked_tenant, asked_user = given.get("tenant") or None, given.get("user") or None
        for name, own, asked in (("tenant", caller.tenant, asked_tenant), ("user", caller.user, asked_user)):
            if own is not None and asked not in (None, own):
                raise AccessError(f"token not valid for {name} {quote_value(asked)}; leave {name} out")
        tenant = caller.tenant or asked_tenant
        return cls(caller, request.url.path, given, caller.user or asked_user or user, tenant, proof)

    @property
    def owner(self) -> dict[str, Any]:
        """Return whose memory is looked at, as verbs take it."""
        return {"user": self.user, "tenant": self.tenant}

    def text(self, name: str) -> str | None:
        """Return an argument; None when it is not given or blank."""
        return (self.given.get(name, "").strip() and self.given[name]) or None

    def needed(self, name: str) -> str:
        """Return an argument.

        Raises:
            InputError: it is not given.
        """
        found = self.text(name)
        if found is None:
            raise InputError(f"{self.path} needs {name}; follow a link of another page")
        return found

    def number(self, name: str, default: int, most: int) -> int:
        """Return a whole number from 1 (or, as a place, 0) to `most`.

        Raises:
            InputError: it is none.
        """
        found = self.text(name)
        if found is None:
            return default
        if not (found.isascii() and found.isdigit() and len(found) <= len(str(most)) and int(found) <= most):
            raise InputError(f"{name} = {quote_value(found)} is not a whole number up to {most:,}; give one")
        return int(found)

    def flag(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self.given.get(name, "") not in ("", "0")

    def address(self, path: str, **given: object) -> str:
        """Return a link to a page about the same owner; what is empty is left out."""
        owner = {} if self.caller.user is not None else {"user": self.user}
        owner |= {"tenant": self.tenant} if self.tenant and self.caller.tenant is None else {}
        return f"{path}?{urlencode({**owner, **{name: one for name, one in given.items() if one not in (None, '')}})}"


def read_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        Refused: it is none.
    """
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict"))
    except ValueError as error:
        raise Refused(InputError(f"the form cannot be read: {error}; send it from the page itself"), 400) from error


def local_path(path: str) -> str:
    """Return a path of this server to go to; anything else leads to the first page."""
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if inside else "/"


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
    environment.globals["worth"] = WORTH
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
