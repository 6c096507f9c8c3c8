"""The core needs nothing that only POSIX has: it works where these modules and calls are missing, as on Windows."""

import subprocess
import sys

from builders import PATIENT

# Libraries are imported as they are here; then what Windows lacks is taken away, and our own code comes.
WINDOWS = """
import os, signal, sqlite3, sys, types
import numpy, Stemmer, markdown_it, yaml, tokenizers, onnxruntime, typer, rich
import asyncio, concurrent.futures.process, concurrent.futures.thread, email, importlib.metadata, importlib.resources
import logging, subprocess, tempfile, xml.etree.ElementTree, zipfile, zoneinfo

for name in ("fcntl", "pwd", "grp", "resource", "termios", "posix_ipc"):
    sys.modules[name] = None
held = {}
def locking(descriptor, mode, size):
    assert os.lseek(descriptor, 0, os.SEEK_CUR) > 0
    held[descriptor] = held.get(descriptor, 0) + (1 if mode == 2 else -1)
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
for name in (
    "fork", "forkpty", "pread", "pwrite", "getuid", "geteuid", "getgid", "chown", "fchown", "fchmod", "mkfifo",
    "uname", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "register_at_fork", "killpg", "setsid",
):
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGKILL
sys.platform = "win32"
"""
STORY = """
from holdfast import Memory
for _ in range(2):
    with Memory.open(sys.argv[1]) as memory:
        memory.remember("The spare key is with Mrs Alves.", user="ana", id="key", session="s")
        memory.ingest("# Oven\\n\\nThe oven is lit at four.\\n", name="oven.md", user="ana")
        memory.ingest_folder(sys.argv[2], user="ana")
        assert memory.search("Who has the key?", user="ana")[0].unit.id == "key"
        assert "Mrs Alves" in memory.assemble("Who has the key?", user="ana", budget=200).text
        assert not memory.store.verify()
with Memory.open(sys.argv[1]) as memory:
    assert memory.backup(sys.argv[1] + ".copy") == 3
    memory.forget(ids="key", user="ana")
    assert len(memory.list(user="ana")) == 2
import holdfast.cli.main
from holdfast.store.sqlite import raw_files
raw_files.register_open(sys.argv[1])
with raw_files.exclusive_access(sys.argv[1]) as alone:
    assert alone and [*held.values()] == [1]
raw_files.unregister_open(sys.argv[1])
print("done", [*held.values()])
"""


def test_the_core_works_without_what_windows_lacks(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "flour.csv").write_text("what,where\nflour,bin\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS + STORY, str(tmp_path / "m.db"), str(folder)],
        capture_output=True, text=True, check=False, env={"PATH": "", "HOME": str(tmp_path)} | PATIENT,
    )  # fmt: skip
    assert done.stdout == "done [0]\n", done.stderr


SERVERS = """
import holdfast.memory  # the store has other locks there
sys.modules["fcntl"] = None
from holdfast import MissingExtraError
from holdfast.cli.main import app
for command in (["token", "list"], ["serve"], ["inspect"], ["mcp"]):
    try:
        app([*command, "--db", sys.argv[1]], prog_name="holdfast", standalone_mode=False)
    except MissingExtraError as error:
        print(command[0], "file locks" in str(error))
"""


def test_what_needs_file_locks_says_in_one_line_that_windows_has_none(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import sys" + SERVERS, str(tmp_path / "m.db")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stderr, done.stdout) == ("", "token True\nserve True\ninspect True\nmcp True\n")
