"""Draw the package as its source stands: `picture` of the imports, `measures` with limits, `formulas`.

`make docs` writes each of them into docs/design/architecture.md, and the picture into CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import inspect
import re
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import FrameType

import holdfast
from holdfast import Memory, Settings
from holdfast.store import contract

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "holdfast"
Imports = dict[str, frozenset[str]]
Table = list[tuple[str, ...]]

# A name that cites a section but holds no formula of it: constants, values, and suites that check it.
NO_FORMULA = ("settings", "types", "testing", "eval")

# What each measure shall reach; tests/unit/test_package.py holds what is reached. No package is left out of a count.
LIMITS = {
    "lines": "47.0k",
    "modules": "190",
    "longest module": "550",
    "import depth": "",
    "modules with one importer": "few",
    "lines of a function: median, 95 %, longest": "6, 22, 75",
    "class names with several meanings": "5",
    "methods of the store's contract": "25",
    "settings, all public": "",
    "constants that are numbers": "",
    "imports by a string": "0",
    "modules that run: `search`": "33",
    "modules that run: `assemble`": "42",
    "modules that run: `remember`": "28",
    "modules that run: `ingest`": "",
    "modules that run: `compact`": "",
    "modules that run: `why`": "",
    "modules that run: `forget`": "",
    "words, README": "700",
    "words, README and docs": "",
}

# A line that names one number or several.
_NUMBERS = re.compile(r"^[A-Z0-9_, ]+ = (-?\d[\d_.e-]*(?:, -?\d[\d_.e-]*)*)(?:  #.*)?$", re.MULTILINE)

SECTIONS = {
    1: "units, identity, visibility",
    2: "words",
    3: "token cost",
    4: "BM25 over fields",
    5: "hypervectors",
    6: "fusion and cuts",
    7: "strategies and profiles",
    8: "facts and closure",
    9: "hybrid score",
    10: "vectors and tiers",
    11: "two-pass discovery",
    12: "hops and mention links",
    13: "dates, temporal selection",
    14: "core documents",
    15: "recent tail",
    16: "packing and rendering",
    17: "gate",
    18: "compaction",
    19: "change and forgetting",
}


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name without the package's own."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> Imports:
    """Return what each module imports of the package when it is itself imported."""
    return {name: frozenset(_imported(name) - {name, ""}) for name in modules()}


def _imported(name: str) -> set[str]:
    return {_module(target) for target in _targets(ast.parse(modules()[name].read_text(encoding="utf-8")))}


def _targets(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names of the package that are imported outside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name.split(".")[0] == "holdfast")
        elif isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "holdfast":
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _targets(child)


def _module(target: str) -> str:
    """Return the module that a dotted name is, or lies in; the package itself is the empty name."""
    name = target.removeprefix("holdfast").removeprefix(".")
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


def depths(graph: Imports) -> dict[str, int]:
    """Return the length of the longest chain of imports below each node, itself included."""
    known: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in known:
            known[name] = 1 + max((depth(below) for below in graph[name]), default=0)
        return known[name]

    return {name: depth(name) for name in graph}


def part_of(name: str) -> str:
    """Return the package or single module at the top that a module belongs to."""
    return name.split(".", maxsplit=1)[0]


@cache
def parts() -> Imports:
    """Return which parts each part imports."""
    graph: dict[str, set[str]] = {part_of(name): set() for name in modules() if name}
    for name, below in imports().items():
        if name:
            graph[part_of(name)] |= {part_of(each) for each in below} - {part_of(name)}
    return {name: frozenset(below) for name, below in graph.items()}


def _indirect(name: str) -> set[str]:
    """Return what a part reaches through another part."""
    reached: set[str] = set()
    waiting = [deeper for below in parts()[name] for deeper in parts()[below]]
    while waiting:
        each = waiting.pop()
        if each not in reached:
            reached.add(each)
            waiting += parts()[each]
    return reached


def picture() -> str:
    """Draw the parts in layers: name, modules, lines, and the imports that no other import already brings along."""
    layer = depths(parts())
    lines = []
    for level in sorted(set(layer.values()), reverse=True):
        for name in sorted(each for each in layer if layer[each] == level):
            below = sorted(parts()[name] - _indirect(name), key=lambda each: (-layer[each], each))
            inside = [module for module in modules() if part_of(module) == name]
            size = f"{len(inside):>3} {thousands(_lines(inside)):>6}"
            lines.append(f"{level:>2}  {name:<12}{size}{'  → ' + ', '.join(below) if below else ''}")
    return "```text\n    part    modules  lines  imports\n" + "\n".join(lines).rstrip() + "\n```"


def _lines(names: list[str]) -> int:
    return sum(modules()[name].read_text(encoding="utf-8").count("\n") for name in names)


def thousands(number: int) -> str:
    """Round to hundreds: a page must not be stale after every edited line."""
    return f"{number / 1000:.1f}k"


def measures() -> Table:
    """Return every measure beside its limit."""
    names = list(modules())
    importers = [sum(name in below for below in imports().values()) for name in names]
    now = {
        "lines": thousands(_lines(names)),
        "modules": str(len(names)),
        "longest module": str(max(_lines([name]) for name in names)),
        "import depth": str(max(depths(imports()).values())),
        "modules with one importer": str(importers.count(1)),
        "lines of a function: median, 95 %, longest": ", ".join(map(str, _function_lines())),
        "class names with several meanings": str(len(shared_names())),
        "methods of the store's contract": str(store_methods()),
        "settings, all public": str(len(Settings().describe())),
        "constants that are numbers": str(sum(map(_numbers, modules().values()))),
        "imports by a string": str(sum(map(_imports_by_string, modules().values()))),
        **{f"modules that run: `{verb}`": str(count) for verb, count in touched().items()},
        "words, README": str(words(ROOT / "README.md")),
        "words, README and docs": thousands(sum(map(words, pages()))),
    }
    return [("measure", "aim", "now"), *((name, LIMITS[name], now[name]) for name in LIMITS)]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def shared_names() -> list[str]:
    """Return the names that more than one class or alias of a type has; type variables apart."""
    places: dict[str, set[Path]] = {}
    for path in modules().values():
        tree = _tree(path)
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            variable = isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("TypeVar(")
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper() and not variable:
                names.add(target.id)
        for name in names:
            places.setdefault(name, set()).add(path)
    return sorted(name for name, found in places.items() if len(found) > 1)


def _imports_by_string(path: Path) -> int:
    """Return how many calls import a module of ours, or one that is computed, by its name."""
    calls = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.Call) and node.args]
    named = [node.args[0] for node in calls if ast.unparse(node.func).endswith(("import_module", "__import__"))]
    return sum(not isinstance(name, ast.Constant) or str(name.value).startswith("holdfast") for name in named)


def _numbers(path: Path) -> int:
    """Return how many names of a module stand for a number; one line may give several."""
    return sum(values.count(",") + 1 for values in _NUMBERS.findall(path.read_text(encoding="utf-8")))


def _function_lines() -> tuple[int, int, int]:
    lengths = sorted(
        (node.end_lineno or 0) - node.lineno + 1
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return int(statistics.median(lengths)), lengths[int(0.95 * len(lengths))], lengths[-1]


def store_methods() -> int:
    """Return how many public methods the protocols of the store's contract have together."""
    protocols = [
        kind
        for kind in vars(contract).values()
        if isinstance(kind, type) and kind.__module__ == contract.__name__ and getattr(kind, "_is_protocol", False)
    ]
    names = {name for kind in protocols for name, _ in inspect.getmembers(kind, inspect.isfunction)}
    return sum(not name.startswith("_") for name in names)


def pages() -> list[Path]:
    """Return the README and every page of the docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def words(page: Path) -> int:
    """Count as `wc -w` does: code, tables and their bars too."""
    return len(page.read_text(encoding="utf-8").split())


def touched() -> dict[str, int]:
    """Return for each verb of `Memory` how many modules of the package it runs code of, on a small history."""
    clock = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)
    with tempfile.TemporaryDirectory(prefix="holdfast-verbs-") as folder:
        page = Path(folder) / "house.md"
        page.write_text("# House\n\nThe boiler was serviced in May.\n\n- Never leave the gate open.\n")
        with Memory.open(
            Path(folder) / "house.db", settings=Settings().without_timeouts(), now=lambda: clock
        ) as memory:
            for number in range(12):
                text = f"We planted {number + 2} tulips beside the shed on day {number + 1}."
                memory.remember(text, user="ana", session="spring", at=clock - timedelta(days=30 - number))
            [seen] = memory.remember("The rain barrel stands by the back door.", user="ana", session="spring")
            verbs: dict[str, Callable[[], object]] = {
                "remember": lambda: memory.remember("I moved the tulips to the front.", user="ana", session="spring"),
                "search": lambda: memory.search("Where does the rain barrel stand?", user="ana"),
                "assemble": lambda: memory.assemble("Where is the barrel?", user="ana", session="spring", budget=400),
                "ingest": lambda: memory.ingest(page, user="ana"),
                "compact": lambda: memory.compact(user="ana", session="spring"),
                "why": lambda: memory.why("Where is the barrel?", seen.id, user="ana"),
                "forget": lambda: memory.forget(user="ana", ids=seen.id),
            }
            return {verb: len(_files_run(call)) for verb, call in verbs.items()}


def _files_run(call: Callable[[], object]) -> set[str]:
    home = str(Path(holdfast.__file__).parent)
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(home):
            files.add(code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files


def formulas() -> Iterator[str]:
    """Yield for each section of the contract the modules whose docstring says that they compute it."""
    for number, about in SECTIONS.items():
        cited = re.compile(rf"\bC{number}\b")
        places = [name for name, path in modules().items() if name and cited.search(_docstring(path))]
        shown = [f"`{name.replace('.', '/')}`" for name in places if part_of(name) not in NO_FORMULA]
        yield f"- C{number}, {about}: {', '.join(shown)}"


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def drawn(table: Table) -> str:
    head, *body = table
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, tuple("---" for _ in head), *body))


DRAWINGS: dict[str, Callable[[], str]] = {
    "picture": picture,
    "measures": lambda: drawn(measures()),
    "formulas": lambda: "\n".join(formulas()),
}

if __name__ == "__main__":
    print(DRAWINGS[sys.argv[1]]())
