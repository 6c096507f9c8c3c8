"""Who may do what: bearer tokens, and what the token of one user may not reach.

A token is 32 random bytes, shown once and kept as a hash in a file next to the store. Nobody guesses one, so that its
plain SHA-256 is as safe to keep as a slow hash, which exists for words that people choose; and every request is
checked, which a slow hash would make slow.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from holdfast.arguments import make_view
from holdfast.errors import AccessError, HoldfastError, InputError, NotFoundError, StoreError, quote_value
from holdfast.memory import Memory
from holdfast.messages.checks import check_name
from holdfast.openers import is_database
from holdfast.settings.loading import user_folder
from holdfast.store.contract import read_once
from holdfast.store.postgres.address import read_address
from holdfast.types import Document, Erasure, Stats, Unit
from holdfast.values import dataclass
from holdfast.why import NAMING_OTHERS

_PREFIX = "hf_"
_RANDOM_BYTES = 32
_PRIVATE = 0o600
_WRITTEN_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_FAULT_OF_SERVER = 500


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token: its name, the hash of it, and whose memory it opens; no user means every user."""

    name: str
    tenant: str
    user: str | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the name of a token and whose memory it opens; without tokens, whoever is on this machine."""

    name: str = "local"
    tenant: str | None = None
    user: str | None = None


def open_lock(path: str) -> int:
    """Open a lock file, made when it is missing, for whoever locks it to write in; no link leads elsewhere.

    Raises:
        OSError: it cannot be opened, or somebody else's file lies there.
    """
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, _PRIVATE)
    found = os.fstat(lock)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return lock
    os.close(lock)
    raise OSError(errno.ELOOP, "it is a link or no regular file; remove it", path)


def token_file(store: str | Path) -> Path:
    """Return where the tokens of a store are kept: beside its file; those of a database in the user's folder."""
    if is_database(store):
        name = hashlib.blake2b(read_address(str(store)).shown.encode(), digest_size=8).hexdigest()
        folder = user_folder()
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}.tokens"
    return Path(f"{os.path.realpath(store)}.tokens")  # a link to a store has the tokens of the store


def open_tokens(database: str | Path) -> Tokens:
    """Return the tokens of a store."""
    return Tokens(token_file(database))


class Tokens:
    """The tokens of one store. The file is read again when it has changed, so that a revoked one ends at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: tuple[tuple[int, int, int], tuple[Token, ...]] = ((0, 0, 0), ())

    def all(self) -> tuple[Token, ...]:
        """Return every token that holds.

        Raises:
            StoreError: the file cannot be read, or others may write it: nobody is let in then.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return ()
        if found.st_mode & _WRITTEN_BY_OTHERS:
            raise StoreError(
                f"others may write {self.path} and may have added tokens; check what is in it, then: chmod 600 "
                f"{self.path}"
            )
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if state != self._read[0]:
            try:
                rows = json.loads(self.path.read_text(encoding="utf-8"))
                self._read = (state, tuple(_read_token(**row) for row in rows))
            except (OSError, ValueError, TypeError) as error:
                raise StoreError(
                    f"{self.path} cannot be read: {error}; restore it, or remove it and make new tokens"
                ) from error
        return self._read[1]

    def find(self, secret: str) -> Token:
        """Return the token that a caller shows.

        Raises:
            AccessError: it is none of this store's, or was revoked.
        """
        shown_hash = _hash(secret)
        matching = [token for token in self.all() if hmac.compare_digest(token.sha256, shown_hash)]
        if not matching:
            raise AccessError("unknown or revoked token; make one with holdfast token add")
        return matching[0]

    def add(self, name: str, tenant: str, user: str | None = None) -> str:
        """Make a token and return it: this is the only time that it can be seen.

        Raises:
            InputError: there is one of that name, or a name cannot be one.
        """
        check_name("name", name)
        check_name("tenant", tenant)
        check_name("user", user, optional=True)
        secret = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        with self._changing() as tokens:
            if any(token.name == name for token in tokens):
                raise InputError(
                    f"there is a token {quote_value(name)} already; choose another name, or revoke it first"
                )
            tokens.append(Token(name, tenant, user, _hash(secret)))
        return secret

    def revoke(self, name: str) -> Token:
        """End a token; a running server refuses it from the next request on.

        Raises:
            NotFoundError: there is none of that name.
        """
        with self._changing() as tokens:
            gone = next((token for token in tokens if token.name == name), None)
            if gone is None:
                raise NotFoundError(f"there is no token {quote_value(name)}; holdfast token list names them")
            tokens.remove(gone)
        return gone

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """Let one process at a time change the list; the file is replaced whole, and only its owner reads it."""
        try:
            lock = open_lock(f"{self.path}.lock")
        except OSError as error:
            raise StoreError(f"tokens cannot be stored next to the store: {error}; check --db") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = [*self.all()]
            yield tokens
            new = Path(f"{self.path}.new")
            new.unlink(missing_ok=True)
            with os.fdopen(
                os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE), "w", encoding="utf-8"
            ) as file:
                json.dump([asdict(token) for token in tokens], file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        finally:
            os.close(lock)


def _read_token(name: str, tenant: str, user: str | None, sha256: str) -> Token:
    """Return a token as the file has it; one that names no tenant would open all of them."""
    for what, value in (("name", name), ("tenant", tenant), ("sha256", sha256)):
        check_name(what, value)
    return Token(name, tenant, check_name("user", user, optional=True), sha256.encode("ascii").decode())


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# Whose a document is holds at any moment.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def answer_for(caller: Caller) -> None:
    """Let answers of this thread name other users to those alone who may know of them."""
    NAMING_OTHERS.set(caller.user is None)


# The folders in front of a file: behind a quote up to the last slash inside of it, elsewhere without spaces.
_FOLDERS = re.compile(r"(?<=')/[^':…]*/|(?<![\w:/.'])/(?:[^\s/'\"]+/)+")


def without_folders(error: HoldfastError) -> HoldfastError:
    """Return what went wrong in the server without where its files lie: that is nothing for callers with tokens."""
    return type(error)(_FOLDERS.sub("", str(error))) if error.status >= _FAULT_OF_SERVER else error


def without_place(found: object) -> object:
    """Return a result that names files of the store without where they lie."""
    if isinstance(found, Stats):
        return replace(found, location=PurePath(found.location).name)
    if isinstance(found, Erasure):
        files, outside = (tuple(PurePath(one).name for one in told) for told in (found.files, found.outside))
        return replace(found, files=files, outside=outside, reason=_FOLDERS.sub("", found.reason))
    return found


def authorise(memory: Memory, verb: str, arguments: Mapping[str, Any]) -> None:
    """Hold the token of one user to that user's own units: what is everyone's is for a token of the tenant.

    Raises:
        AccessError: the verb would change what is everyone's.
    """
    touched: list[Unit | Document] = []  # what is new is the user's own, and supersedes that user's alone
    if verb == "forget":
        touched += memory.forget(**{**arguments, "dry_run": True}).units
        touched += _meant(memory, arguments)
    elif verb in ("update", "supersede", "reinstate", "overrule"):
        owner: dict[str, Any] = {name: arguments.get(name) for name in ("user", "agent", "tenant")}
        touched += [memory.get(arguments[name], **owner) for name in ("id", "by") if name in arguments]
    if any(one.user is None for one in touched):
        raise AccessError("this token is for one user, and that is shared; use a token of the tenant")


def _meant(memory: Memory, arguments: Mapping[str, Any]) -> list[Document]:
    """Return the document that a user's `forget` names, which may have no units: one's own comes first."""
    if (name := arguments.get("document")) is None:
        return []
    view = make_view(memory.settings, _ANY_TIME, user=arguments["user"], tenant=arguments.get("tenant"))
    kept = read_once(memory.store, view, lambda reading: reading.documents(name=name, bodies=False))
    return [one for one in kept if one.user is not None] or kept
