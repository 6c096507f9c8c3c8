"""The shape of the package: what it promises, what importing costs, how large its parts may grow."""

import ast
import dataclasses
import functools
import subprocess
import sys
from importlib import resources
from pathlib import Path

import holdfast
from holdfast import HoldfastError, Settings, errors
from holdfast.store import contract
from holdfast.store.sqlite.migrate import migrations, queries

SOURCE = Path(holdfast.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


@functools.cache
def parsed(path):
    """Return the tree of a module."""
    return ast.parse(read(path))


@functools.cache
def nodes_of(path):
    """Return every node of a module."""
    return list(ast.walk(parsed(path)))


def read(path):
    """Return the source of a module."""
    return path.read_text(encoding="utf-8")


def dotted(path):
    """Return the name by which a module is imported."""
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_the_public_face_is_what_it_says():
    public = {name for name in vars(holdfast) if not name.startswith("_")} - {"TYPE_CHECKING"}
    modules = {path.stem if path.stem != "__init__" else path.parent.name for path in MODULES}
    assert public - modules == set(holdfast.__all__) - {"__version__"} - {"AsyncMemory"}
    assert all(hasattr(holdfast, name) for name in holdfast.__all__)  # also what is imported when it is asked for


def test_every_error_is_exported_and_under_one_root():
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    own = [kind for kind in classes if kind.__module__ == "holdfast.errors"]
    assert all(issubclass(kind, HoldfastError) for kind in own)
    assert {kind.__name__ for kind in own} == set(errors.__all__)
    assert set(errors.__all__) <= set(holdfast.__all__)
    assert all(f"{kind.__name__} " in (errors.__doc__ or "") for kind in own)


# What readers of documents need, and what else few programs do.
RARE = (
    "markdown_it", "yaml", "email", "holdfast.documents.parser", "holdfast.documents.markdown", "importlib.metadata",
    "holdfast.transfer", "holdfast.store.postgres.postgres_store", "holdfast.integrations", "psycopg",
)  # fmt: skip
# What belongs to other commands.
OTHERS = ("holdfast.eval", "holdfast.cli.doctor", "holdfast.cli.demo", "holdfast.testing", "httpx")


def imported_by(folder, program):
    """Return what a program has imported when it ends."""
    ending = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    command = [sys.executable, "-c", f"{ending}\n{program}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_importing_does_nothing_to_the_world(tmp_path):
    unwanted = {
        *RARE,
        *OTHERS,
        "typer",
        "rich",
        "holdfast.server",
        "pydantic",
        "onnxruntime",
        "tokenizers",
        "sqlite3",
    }
    assert not unwanted & imported_by(tmp_path, "import holdfast")
    assert list(tmp_path.iterdir()) == []


def test_a_command_imports_what_it_needs(tmp_path):
    start = "from holdfast.cli.main import main; import sys; sys.argv[1:] ="
    unwanted = {*RARE, *OTHERS}
    assert not (unwanted | {"pydantic", "onnxruntime", "sqlite3"}) & imported_by(
        tmp_path, f"{start} ['--version']; main()"
    )
    holdfast.Memory.open(tmp_path / "holdfast.db").close()
    # What validates the options and what reads the model may import these themselves.
    found = imported_by(tmp_path, f"{start} ['search', '--profile', 'fast', 'tea']; main()")
    assert not (unwanted - {"importlib.metadata", "email"}) & found


def test_data_files_are_in_the_package():
    assert (resources.files("holdfast") / "py.typed").is_file()
    assert (resources.files("holdfast.sample") / "history.jsonl").is_file()
    assert len(migrations()) >= 1
    assert "find_unit" in queries()


def test_every_named_query_is_used():
    code = "".join(read(path) for folder in ("store", "store/sqlite") for path in (SOURCE / folder).glob("*.py"))
    for name in queries():
        assert f'"{name}"' in code or f'f"{name.rsplit("_", 1)[0]}_' in code, name


def test_every_setting_is_public():
    groups = {one.name for one in dataclasses.fields(Settings)} - {"recipe", "origins"}
    declared = {f"{name}.{one.name}" for name in groups for one in dataclasses.fields(getattr(Settings(), name))}
    # What nobody changes is a constant beside the code that uses it: there is no hidden setting.
    assert {".".join(row.key.split(".")[:2]) for row in Settings().describe()} == declared | {"recipe"}


# Lines of each room, everything counted; reached, and rounded up a little: what is added pays for its room.
MOST_MODULES = 202
MOST_LINES = {
    "": 3_470, "cli": 2_870, "client": 620, "context": 1_610, "documents": 4_100, "eval": 2_860,
    "integrations": 1_770, "kernels": 1_460, "lifecycle": 1_810, "messages": 1_010, "models": 1_680, "ranking": 1_720,
    "retrieval": 1_070, "sample": 40, "server": 4_240, "settings": 900, "store": 10_910, "testing": 1_350,
    "text": 6_250, "transfer": 2_270, "types": 1_980,
}  # fmt: skip
LONGEST_IMPORT_CHAIN = 22


def test_the_package_does_not_grow_unnoticed():
    lines = dict.fromkeys(MOST_LINES, 0)
    for path in MODULES:
        lines[path.relative_to(SOURCE).parts[0] if path.parent != SOURCE else ""] += read(path).count("\n")
    assert len(MODULES) <= MOST_MODULES
    assert {room: size for room, size in lines.items() if size > MOST_LINES[room]} == {}


def test_a_module_has_a_name_of_its_own():
    stems = [path.stem for path in MODULES if path.stem != "__init__"]
    rooms = {path.parent.name for path in MODULES} - {"holdfast"}
    assert sorted(stems) == sorted(set(stems))
    assert rooms & set(stems) == set()


def test_imports_do_not_pile_up():
    names = {dotted(path): path for path in MODULES}
    imported = {name: _imports(path, names) - {name} for name, path in names.items()}

    @functools.cache
    def longest_chain(name):
        return 1 + max(map(longest_chain, imported[name]), default=0)

    assert max(map(longest_chain, names)) <= LONGEST_IMPORT_CHAIN


def _imports(path, names):
    """Return which modules of the package a module imports when it is imported itself."""
    found = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {inner if (inner := f"{node.module}.{one.name}") in names else node.module for one in node.names}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return found & names.keys()


def test_modules_and_functions_stay_readable():
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 550, path
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno <= 75, (path, node.name)


def test_a_store_is_little_to_implement():
    verbs = [
        name
        for protocol in (contract.Store, contract.Reading)
        for name, value in vars(protocol).items()
        if callable(value) and not name.startswith("_")
    ]
    # `mark` is the latest: without it, what `about` found could not be kept and be sure to be of the present (C19).
    assert len(verbs) <= 25, verbs


def test_no_broad_except_and_no_print():
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ExceptHandler):
                bare = node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
                assert not bare or path.name == "errors.py", path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", path
