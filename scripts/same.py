"""Does the code still answer as it did? Compares two trees on development data, or one tree with a committed sample.

    python scripts/same.py data FOLDER --base COMMIT [--only NAME …] [--whole] [--postgres]
    python scripts/same.py sample [--write]

`data` lays the tree of a commit into a temporary folder and lets it and this one answer the same questions, in both
recipes: ids, scores and contributions as hex floats, the bytes of contexts, facts, summaries and exports. The first
line that differs is printed. `sample` asks the small store in tests/data/same, which was written by the code as it
was at 0a69108, and compares what the command line, HTTP, OpenAPI and `--help` say with what is written beside it.

Both trees are asked through their public interface alone, so that names inside may change between them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx

import holdfast
from holdfast import Memory, Settings, sample

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "data" / "same"
# Questions asked of one haystack; a summary of every haystack's longest session comes with them.
MOST_QUESTIONS = 40
BUDGET = 1500
PROFILES = ("hybrid", "fast", "balanced", "thinking")
RECIPES = ("default", "reference")
USER = "me"
# Time budgets must not decide what is found on a busy machine.
PATIENT = {"retrieval.timeout_ms": 600_000.0, "retrieval.escalation_timeout_ms": 600_000.0}


# ------------------------------------------------------------------------------------------- answers of one tree


def plain(value: Any) -> Any:
    """Return a value as JSON that is told by what it holds, not by the names of its class and fields."""
    if isinstance(value, float):
        return value.hex()
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(plain(one)) for one in value)
    if isinstance(value, Sequence):
        return [plain(one) for one in value]
    return str(value)


def answer(cases: Path, out: Path, store: str | None) -> None:
    """Answer every case with the tree that is first on the path; one line of JSON for each answer."""
    haystacks = json.loads(cases.read_text(encoding="utf-8"))
    with out.open("w", encoding="utf-8") as lines:
        for number, haystack in enumerate(haystacks):
            for recipe in RECIPES:
                for label, said in _answers(haystack, recipe, f"{store}_{number}_{recipe}" if store else None):
                    lines.write(json.dumps([haystack["name"], recipe, label, said], ensure_ascii=False) + "\n")
            print(f"{out.name}: {number + 1} of {len(haystacks)}", file=sys.stderr, flush=True)


def _answers(haystack: Mapping[str, Any], recipe: str, address: str | None) -> Iterator[tuple[str, Any]]:
    clock = [datetime.fromisoformat(haystack["from"])]
    settings = Settings.load({"recipe": recipe, "store.user": USER, **PATIENT}, environ={})
    with tempfile.TemporaryDirectory() as folder:
        path = address or str(Path(folder) / "memory.db")
        with Memory.open(path, settings=settings, now=lambda: clock[0]) as memory:
            for session, messages in haystack["sessions"]:
                clock[0] = max(clock[0], datetime.fromisoformat(messages[-1]["at"]))
                yield f"remember {session}", plain(memory.remember(messages, user=USER, session=session))
            yield from _questions(memory, haystack["questions"])
            yield "facts", plain(memory.facts(user=USER))
            longest = max(haystack["sessions"], key=lambda one: len(one[1]))[0]
            yield "compact", plain(memory.compact(user=USER, session=longest))
            yield from _questions(memory, haystack["questions"][:3])
            exported = Path(folder) / "export.jsonl"
            memory.export(str(exported), user=USER)
            yield "export", hashlib.sha256(exported.read_bytes()).hexdigest()
            gone = memory.list(user=USER, limit=3)[-1].id
            yield "forget", plain(memory.forget(user=USER, ids=[gone]).units)
            yield from _questions(memory, haystack["questions"][:1])


def _questions(memory: Any, questions: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, Any]]:
    for number, question in enumerate(questions):
        text, at = question["text"], datetime.fromisoformat(question["at"])
        # The other profiles take their time and read the same columns: a few questions show them.
        for profile in PROFILES if number < 5 else PROFILES[:1]:
            found = memory.search(text, user=USER, profile=profile, reference_time=at, explain=True)
            hits = [[hit.unit.id, hit.score.hex(), hit.rel.hex(), plain(hit.contributions)] for hit in found]
            yield f"search {profile} {text}", hits
        context = memory.assemble(text, user=USER, budget=BUDGET, reference_time=at, track_access=False)
        yield f"assemble {text}", [context.text, context.tokens]
        if found := memory.list(user=USER, limit=1):
            yield f"why {text}", plain(memory.why(text, found[0].id, user=USER, reference_time=at))


# --------------------------------------------------------------------------------------------- cases from data


def write_cases(folder: str, only: Sequence[str], out: Path, *, whole: bool) -> None:
    """Write development data as sessions and questions that a tree can be given without knowing its form."""
    from holdfast.eval.datasets import load_sets, take_quick_part  # noqa: PLC0415 - not of the other tree

    cases = []
    for data in load_sets(folder, only).sets:
        for haystack in (data if whole else take_quick_part(data)).haystacks:
            sessions: dict[str, list[dict[str, Any]]] = {}
            for one in haystack.messages:
                message = {"role": "user" if one.author == "document" else one.author, "content": one.spoken}
                sessions.setdefault(one.session, []).append(message | {"id": one.id, "at": one.at.isoformat()})
            asked = [{"text": one.text, "at": one.at.isoformat()} for one in haystack.questions]
            first = min(one.at for one in haystack.messages)
            cases.append({
                "name": f"{data.name}/{haystack.id}", "from": first.isoformat(), "sessions": [*sessions.items()],
                "questions": asked if whole else asked[:MOST_QUESTIONS],
            })  # fmt: skip
    out.write_text(json.dumps(cases), encoding="utf-8")


def compare_data(args: argparse.Namespace) -> int:
    """Let both trees answer at the same time; return 1 when they differ."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = Path(folder)
        cases = place / "cases.json"
        write_cases(args.folder, args.only, cases, whole=args.whole)
        archive = subprocess.run(["git", "archive", args.base, "src"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        stores = stack.enter_context(_databases(json.loads(cases.read_text()))) if args.postgres else {}
        running = [
            subprocess.Popen(
                [sys.executable, __file__, "answer", str(cases), str(place / name), *stores.get(name, [])],
                env={**os.environ, "PYTHONPATH": str(tree / "src")},
            )
            for name, tree in (("base", place), ("now", ROOT))
        ]
        if [code for code in [process.wait() for process in running] if code]:
            raise SystemExit("one of the trees failed; see above")
        return _compare(place / "base", place / "now", args.base)


@contextlib.contextmanager
def _databases(cases: Sequence[object]) -> Iterator[dict[str, list[str]]]:
    """Start a PostgreSQL server of our own, with an empty database for each case of each tree."""
    sys.path.insert(0, str(ROOT / "tests"))
    postgres_server = import_module("postgres_server")  # a helper of the tests, which have no types

    server = postgres_server.OwnServer()
    try:
        for name in ("base", "now"):
            for number in range(len(cases)):
                for recipe in RECIPES:
                    server.run(f"CREATE DATABASE {name}_{number}_{recipe}")
        yield {name: [server.at(name)] for name in ("base", "now")}
    finally:
        server.close()


def _compare(base: Path, now: Path, commit: str) -> int:
    pairs = list(zip(_lines(base), _lines(now), strict=True))
    for one, other in pairs:
        if one != other:
            print(" · ".join(one[:3]), next(differences(one[3], other[3]), "in its name"))
    names = sorted({one[0].partition("/")[0] for one, _ in pairs})
    wrong = sum(one != other for one, other in pairs)
    print(f"{len(pairs) - wrong} of {len(pairs)} answers equal those of {commit}: {', '.join(names)}")
    return int(wrong > 0)


def _lines(file: Path) -> Iterator[list[Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


# ------------------------------------------------------------------------------------------- the committed sample

STORE, EXPORT, SETTINGS = "store.sqlite3", "export.jsonl", "settings.toml"
QUESTIONS = (
    "To which date was the opening of the bakery postponed?", "Do they have a pet?", "Where do they live now?",
    "What did Tomas say about opening hours in June?", "What do I do when the oven shows E-37?",
    "What is the average complexity of quicksort?",
)  # fmt: skip
AT = "2026-06-30T09:00:00Z"
TOKEN = "hf_the-token-of-the-sample"
UNIT = "u-fa8e51ea5de5fd08210b"  # what answers the first question
# What is new at every call: what a clock measured, and the number of a problem.
VOLATILE = {"duration_ms", "instance", "made"}


def commands() -> list[list[str]]:
    """Return what the sample asks on the command line; nothing here changes the store."""
    few = ["--limit", "2", "--explain"]
    asked = [["search", one, *few, *more] for one in QUESTIONS for more in ([], ["--json"])]
    asked += [["search", one, "--profile", name, "--json"] for one in QUESTIONS[:2] for name in PROFILES[1:]]
    asked += [["assemble", one, "--budget", "300", *more] for one in QUESTIONS for more in ([], ["--json"])]
    asked += [["why", QUESTIONS[0], UNIT, *more] for more in ([], ["--json"])]
    asked = [[*one, "--reference-time", AT] for one in asked]
    shown = [["show", UNIT], ["show", "nothing"], ["list", "--limit", "4"], ["history", "ana-1"], ["token", "list"]]
    for one in [*shown, *map(str.split, "facts stats users sessions documents agents settings".split())]:
        asked += [one, [*one, "--json"]]
    return asked


def make_sample() -> None:
    """Write the store, the export, the settings and the tokens of the sample anew, with the code as it is."""
    SAMPLE.mkdir(parents=True, exist_ok=True)
    (SAMPLE / SETTINGS).write_text(
        '[embedding]\nembedder = "potion"\n\n[store]\nuser = "household"\nzone = "Europe/Lisbon"\n\n'
        "[retrieval]\ntimeout_ms = 600000.0\nescalation_timeout_ms = 600000.0\n\n[assembly]\nbudget = 900\n"
    )
    clock = [datetime.fromisoformat("2026-01-08T19:00:00+00:00")]
    (SAMPLE / STORE).unlink(missing_ok=True)
    settings = Settings.load(file=SAMPLE / SETTINGS, environ={})
    with Memory.open(SAMPLE / STORE, settings=settings, now=lambda: clock[0]) as memory:
        for session, messages in sample.sessions():
            clock[0] = datetime.fromisoformat(messages[-1]["at"])
            memory.remember(messages, user=sample.USER, session=session)
        clock[0] = datetime.fromisoformat(AT)
        for name, text in sample.handbook().items():
            memory.ingest(text, user=sample.USER, name=name)
        memory.ingest(
            "# Rules\n\n- Never share keys.\n\nYou must be polite.\n", user=sample.USER, name="rules.md", core=True
        )
        memory.remember("My sister Ana works at the harbour.", user=sample.USER, id="ana-1")
        memory.update("ana-1", user=sample.USER, text="My sister Ana works at the town hall.")
        memory.compact(user=sample.USER, session=next(iter(sample.sessions()))[0])
        (SAMPLE / EXPORT).unlink(missing_ok=True)
        memory.export(str(SAMPLE / EXPORT), user=sample.USER)
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    print(f"write {STORE}.tokens by `holdfast token add`; the hash of the token that is asked with is {digest}")


def ask_sample(folder: Path) -> dict[str, Any]:
    """Return what a copy of the sample answers in `folder`, by the interface."""
    for file in SAMPLE.iterdir():
        if file.is_file() and not file.name.startswith("said-"):
            shutil.copy(file, folder / file.name)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        del os.environ[name]
    os.environ |= {
        "HOLDFAST_SETTINGS": SETTINGS, "HOLDFAST_STORE__PATH": STORE, "COLUMNS": "100", "NO_COLOR": "1",
        "TERM": "dumb", "XDG_CONFIG_HOME": str(folder),
    }  # fmt: skip
    with contextlib.chdir(folder):
        said = {"export": _carry(), "help": _ask_help(), "command line": _ask_commands(), "HTTP": _ask_http()}
    found: dict[str, Any] = json.loads(json.dumps(_settled(said), ensure_ascii=False).replace(str(folder), ""))
    return found


def _settled(value: Any) -> Any:
    """Return what was said without what is new at every call; JSON that a command printed is read."""
    if isinstance(value, dict):
        return {key: _settled(one) for key, one in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_settled(one) for one in value]
    if isinstance(value, str) and value.startswith(("{", "[")) and value.endswith("\n"):
        with contextlib.suppress(json.JSONDecodeError):  # a text that only begins like JSON
            return _settled(json.loads(value))
    return value


def _run(arguments: Sequence[str]) -> list[Any]:
    """Run a command in this process, as its entry point does; return its exit code and what it printed."""
    (entry,) = entry_points(group="console_scripts", name="holdfast")
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["holdfast", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            entry.load()()
    except SystemExit as left:
        return [left.code or 0, out.getvalue(), err.getvalue()]
    finally:
        sys.argv = before
    return [0, out.getvalue(), err.getvalue()]


def _ask_help() -> dict[str, Any]:
    said = {}
    waiting: list[list[str]] = [[]]
    while waiting:
        words = waiting.pop()
        said[" ".join(["holdfast", *words, "--help"])] = text = _run([*words, "--help"])[1]
        boxes = re.findall(r"^╭─ (.+?) ─+╮\n(.*?)^╰", text, re.MULTILINE | re.DOTALL)
        box = "".join(lines for title, lines in boxes if title not in ("Options", "Arguments"))  # of commands
        waiting += [[*words, name] for name in re.findall(r"^│ ([a-z][a-z-]*) ", box, re.MULTILINE)]
    return dict(sorted(said.items()))


def _ask_commands() -> dict[str, Any]:
    return {" ".join(["holdfast", *one]): _run(one) for one in commands()}


def _ask_http() -> dict[str, Any]:
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0"]
    # The server is of this tree, wherever it was found.
    env = {**os.environ, "PYTHONPATH": str(Path(holdfast.__file__).parents[1])}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            heard = iter(server.stdout.readline, "")
            address = next(found[0] for line in heard if (found := re.search(r"http://127[\d.:]+", line)))
            with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
                return {f"{method} {path} {body or ''}".strip(): [reply.status_code, reply.json()]
                        for method, path, body in _requests()
                        for reply in [client.request(method, path, json=body)]}  # fmt: skip
        finally:
            server.terminate()


def _requests() -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    for question in QUESTIONS:
        body = {"query": question, "user": "household", "reference_time": AT}
        yield "POST", "/v1/search", body | {"explain": True, "limit": 2}
        yield "POST", "/v1/context", body | {"budget": 300, "track_access": False}
        yield "POST", "/v1/why", body | {"id": UNIT}
    for path in ("units?limit=4", f"units/{UNIT}", "units/ana-1/history", "facts", "stats", "users", "sessions",
                 "documents", "agents", "units/nothing"):  # fmt: skip
        yield "GET", f"/v1/{path}{'&' if '?' in path else '?'}user=household", None
    yield "POST", "/v1/search", {"query": 7, "user": "household"}
    yield "GET", "/openapi.json", None


def _carry() -> dict[str, Any]:
    """Export the sample before anything is asked, which counts; import what was exported before, and export that."""
    said = {"export": _run(["export", "again.jsonl"])[0], "import": _run(["import", EXPORT, "--db", "other.db"])[:2]}
    said["export of the import"] = _run(["export", "other.jsonl", "--db", "other.db"])[0]
    for name in (EXPORT, "again.jsonl", "other.jsonl"):
        # The head says when it was made, and the end has the checksum of that.
        head, *lines, _ = Path(name).read_text(encoding="utf-8").splitlines()
        said[name] = [json.loads(head), hashlib.sha256("\n".join(lines).encode()).hexdigest()]
    return said


def differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield every place at which two values differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from differences(before.get(key), now.get(key), f"{where} · {key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{where}[{place}]")
    elif before != now:
        yield f"{where.removeprefix(' · ')}\n  was: {before!s:.400}\n  now: {now!s:.400}"


def compare_sample(args: argparse.Namespace) -> int:
    """Ask the sample; print what is no longer said as it was, or write down what is said now."""
    with tempfile.TemporaryDirectory() as folder:
        now = ask_sample(Path(folder).resolve())
    wrong = 0
    for interface, said in now.items():
        file = SAMPLE / f"said-{interface.replace(' ', '-').lower()}.json"
        if args.write:
            lines = (f"{json.dumps(key)}: {json.dumps(one, ensure_ascii=False)}" for key, one in said.items())
            file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
            continue
        found = list(differences(json.loads(file.read_text(encoding="utf-8")), said))
        wrong += len(found)
        print("\n".join(found) or f"{interface}: {len(said)} answers are as they were")
    return int(wrong > 0)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    data = kinds.add_parser("data")
    data.add_argument("folder")
    data.add_argument("--base", default="HEAD")
    data.add_argument("--only", nargs="*", default=[])
    data.add_argument("--whole", action="store_true")
    data.add_argument("--postgres", action="store_true")
    worker = kinds.add_parser("answer")
    worker.add_argument("cases", type=Path)
    worker.add_argument("out", type=Path)
    worker.add_argument("store", nargs="?")
    sample = kinds.add_parser("sample")
    sample.add_argument("--write", action="store_true")
    kinds.add_parser("make-sample")
    args = parser.parse_args()
    if args.kind == "answer":
        answer(args.cases, args.out, args.store)
        return 0
    if args.kind == "make-sample":
        make_sample()
        return 0
    return compare_data(args) if args.kind == "data" else compare_sample(args)


if __name__ == "__main__":
    sys.exit(main())
