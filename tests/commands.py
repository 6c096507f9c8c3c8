"""The command line as a user runs it: in this process, which is quick, or in one of its own, which proves the rest.

`command_line` goes the way of the installed program: its arguments, its environment, its standard input and outputs,
its exit code. An error that `main` lets through, of which a process would print a traceback, fails the test.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from builders import PATIENT
from holdfast.cli.main import main

PROGRAM = Path(sys.executable).with_name("holdfast")
MODULE = (sys.executable, "-m", "holdfast")
SCREEN = {"COLUMNS": "120", "NO_COLOR": "1"}
BY_WORDS = {"HOLDFAST_EMBEDDING__EMBEDDER": "none"}


@dataclass(frozen=True)
class Ended:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    def said(self, arguments, code):
        """Return its JSON if that was asked for, else its words; it has to end with this code."""
        assert self.code == code, self.out + self.err
        assert "Traceback" not in self.err
        return json.loads(self.out) if "--json" in arguments else self.out + self.err


class _Pipe(io.TextIOWrapper):
    """A standard stream; in front of it may sit a person."""

    def __init__(self, content="", *, terminal=False):
        super().__init__(io.BytesIO(content.encode()), encoding="utf-8", write_through=True)
        self._terminal = terminal

    def isatty(self):
        return self._terminal

    def written(self):
        return self.buffer.getvalue().decode()


def holdfast(*arguments, given="", terminal=False, **environment):
    """Run a command in this process and its folder."""
    out, err = _Pipe(), _Pipe()
    with (
        mock.patch.dict(os.environ, environment),  # takes back what the command itself sets, too
        mock.patch.object(sys, "argv", ["holdfast", *map(str, arguments)]),
        mock.patch.object(sys, "stdin", _Pipe(given, terminal=terminal)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        sys.exit(main())  # as the installed program does
    return Ended(ended.value.code or 0, out.written(), err.written())


def command_line(folder, monkeypatch, **environment):
    """Return a function that runs commands in a folder, with these variables in the environment."""
    monkeypatch.chdir(folder)
    for name, value in (SCREEN | environment).items():
        monkeypatch.setenv(name, value)

    def run(*arguments, code=0, given="", terminal=False, **environment):
        return holdfast(*arguments, given=given, terminal=terminal, **environment).said(arguments, code)

    return run


def environment(**more):
    """Return the environment for a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return kept | SCREEN | PATIENT | more


def process(folder, *command, given=None, **more):
    """Run a command in a process of its own."""
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment(**more), input=given, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)
