"""The wheel and the sdist carry everything that they need and nothing else, and the sdist makes the same wheel."""

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What is in the package besides modules; a new kind of file is added here when it is meant to be there.
CARRIED = re.compile(
    r"holdfast/(?:py\.typed"
    r"|(?:\w+/)*\w+\.py"
    r"|about\.txt"
    r"|documents/(?:roles\.toml|units\.schema\.json)"
    r"|messages/secrets\.toml"
    r"|server/api\.toml"
    r"|text/(?:english\.toml|asking\.json)"
    r"|transfer/whatsapp\.toml"
    r"|models/\w+/(?:LICENSE|PROVENANCE\.json|model\.onnx|tokenizer\.json|embeddings\.npy)"
    r"|sample/(?:handbook/\w+\.md|\w+\.jsonl?)"
    r"|store/(?:postgres|sqlite)/sql/(?:queries|search|migrations/\d{4}_\w+)\.sql"
    r"|(?:\w+/)*(?:templates|static)/[\w./-]+\.(?:html|css|js|svg|txt)"
    r")"
)
OF_THE_SDIST = {
    "src", "tests", "docs", "benchmarks", "scripts", "integrations", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
    "LICENSE", "Makefile", "Dockerfile", "pyproject.toml", "PKG-INFO", ".gitignore",
}  # fmt: skip
UNWANTED = re.compile(
    r"(?:^|/)(?:__pycache__|\.venv|\.hosts|dist|build|\.\w+_cache|\.hypothesis|node_modules)(?:/|$)|\.pyc$|\.db"
)
MOST_BYTES = 75_000_000


def build(source, target, kind):
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [made] = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


def contents(wheel):
    with zipfile.ZipFile(wheel) as files:
        return {name: files.read(name) for name in files.namelist()}


def test_the_wheel_carries_the_package_and_nothing_else(wheel):
    carried = contents(wheel)
    described = {name for name in carried if ".dist-info/" in name}
    assert {name for name in carried.keys() - described if not CARRIED.fullmatch(name)} == set()
    there = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    assert {name for name in there if not UNWANTED.search(name)} == carried.keys() - described
    assert wheel.stat().st_size <= MOST_BYTES


def test_every_model_comes_with_its_licence(wheel):
    carried = contents(wheel)
    models = {name.split("/")[2] for name in carried if re.fullmatch(r"holdfast/models/\w+/\w+\.(?:onnx|npy)", name)}
    assert models == {"minilm", "potion", "reader"}
    for model in models:
        assert len(carried[f"holdfast/models/{model}/LICENSE"]) > 500
        assert any(name.endswith(f"licenses/src/holdfast/models/{model}/LICENSE") for name in carried)


def test_the_sdist_carries_what_it_takes_to_test_and_build_and_nothing_else(sdist):
    with tarfile.open(sdist) as files:
        names = [name.partition("/")[2] for name in files.getnames()]
    assert {name.partition("/")[0] for name in names} <= OF_THE_SDIST
    assert [name for name in names if UNWANTED.search(name)] == []
    for needed in ("tests/conftest.py", "scripts/docs.py", "src/holdfast/py.typed", "integrations/openclaw/index.js"):
        assert needed in names


def test_the_sdist_makes_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as files:
        files.extractall(tmp_path, filter="data")
    [folder] = tmp_path.iterdir()
    assert contents(build(folder, tmp_path / "made", "wheel")) == contents(wheel)


def test_what_the_project_says_of_itself_holds(wheel):
    carried = contents(wheel)
    [metadata] = [body for name, body in carried.items() if name.endswith("/METADATA")]
    said = email.message_from_bytes(metadata)
    assert said["Requires-Python"] == PROJECT["requires-python"]
    assert said["License-Expression"] == "MIT"
    extras = set(said.get_all("Provides-Extra"))
    assert extras == set(PROJECT["optional-dependencies"])
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(said.get_all("Classifier")))
    assert versions == ["3.11", "3.12", "3.13"], "a Python is named when tests were run on it"
    assert not said.get_all("Project-URL"), "an address has to lead somewhere"


def test_the_groups_of_tests_name_the_same_libraries_as_the_extras():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    for name in ("documents", "postgres"):
        assert set(PROJECT["optional-dependencies"][name]) <= set(groups[name])
    assert {name for extra in ("server", "remote", "mcp") for name in PROJECT["optional-dependencies"][extra]} <= set(
        groups["interfaces"]
    )
