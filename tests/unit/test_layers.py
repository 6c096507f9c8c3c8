"""Imports point one way: import-linter checks what is imported anywhere in a module; here strings count as well."""

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS = [
    layer.split(" | ")
    for contract in PROJECT["tool"]["importlinter"]["contracts"]
    if contract.get("exhaustive")
    for layer in contract["layers"]
]
HEIGHT = {room: len(LAYERS) - place for place, rooms in enumerate(LAYERS) for room in rooms}
DOTTED = re.compile(r"holdfast(?:\.\w+)+")


@functools.cache
def nodes_of(source):
    """Return every node of a module."""
    return list(ast.walk(ast.parse(source)))


def named_in(source):
    """Yield the modules of ours that a module names, in an import or in a string that is nothing but their name."""
    for node in nodes_of(source):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names if node.module == "holdfast")
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            yield node.value
        elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            yield node.values[0].value


def upward(room, source):
    """Return what a module of a room names that lies above or beside its room."""
    rooms = {name.split(".")[1] for name in named_in(source) if name.startswith("holdfast.") and name.count(".")}
    return {other for other in rooms - {room} if other in HEIGHT and HEIGHT[other] >= HEIGHT[room]}


def test_no_module_names_what_lies_above_it():
    found = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room != "__init__" and (wrong := upward(room, path.read_text(encoding="utf-8"))):
            found[path.name] = wrong
    assert found == {}
    assert {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")} - {
        "__init__"
    } == HEIGHT.keys()


@pytest.mark.parametrize(
    "planted",
    [
        "from holdfast.server import http",
        "def f():\n    from holdfast.server.http import HttpServer",
        "from holdfast import server",
        "import holdfast.server.http",
        "import_module('holdfast.server.http')",
        "import_module(f'holdfast.server.{name}')",
        "if TYPE_CHECKING:\n    from holdfast.server.http import HttpServer",
    ],
)
def test_a_planted_fault_is_found(planted):
    assert upward("memory", planted) == {"server"}
    assert upward("cli", planted) == set()


def test_nothing_of_ours_is_imported_by_a_name_that_is_computed():
    for path in SOURCE.rglob("*.py"):
        for node in nodes_of(path.read_text(encoding="utf-8")):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.endswith(("import_module", "__import__")):
                assert isinstance(node.args[0], ast.Constant), path
                assert not node.args[0].value.startswith("holdfast"), path
