"""The docs say what the program does: commands, Python blocks, names, links and the picture."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from xml.etree import ElementTree as ET

import pytest
import typer
from blocks import ROOT, outputs, pages, pages_with_python, shown

from builders import program
from holdfast import Settings, errors, ingest, recall
from holdfast.cli.main import app
from holdfast.lifecycle import embedding
from holdfast.settings import PROFILES
from holdfast.store.contract import Store

REFERENCE = ROOT / "docs" / "reference.md"
PICTURE = ROOT / "docs" / "img" / "pipeline.svg"
EVERY_PAGE = [*pages(), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
# What the pages may grow to, counted as `wc -w` does: a page that nobody finishes helps nobody.
MOST_WORDS = 40_280  # 7,500 of them are the contract, 4,200 the reference, which lists every public setting
# Pages of the interfaces and of more than one machine are counted apart, as their code is: each has its own readers.
MOST_WORDS_OF_INTERFACES, MOST_WORDS_OF_SCALE = 3_400, 1_400
MOST_WORDS_OF_A_GUIDE = 900
MOST_WORDS_OF_THE_README = 700
# A setting as prose names it; the group must be one of ours.
SETTING = re.compile(r"`([a-z_]+)\.([a-z_0-9]+)(?: = [^`]+)?`")
# What the picture draws besides stages: a verb of `Memory`, and what the store is made of.
NOT_STAGES = {"update", "index", "snapshot", "store", "versions", "changes", "another process"}
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def name(page):
    return str(page.relative_to(ROOT))


def prose(page):
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """Return the names of a page's headings, as they can be linked to."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.slow
def test_the_console_blocks_show_what_the_commands_print():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with_python(), ids=name)
def test_the_python_blocks_run_and_print_what_the_page_says(page):
    printed, contract_tests = outputs(page)
    assert printed == shown(page), "if the new output is right: python tests/docs/blocks.py"
    assert bool(contract_tests) == ("Contract):" in page.read_text(encoding="utf-8"))


def test_every_setting_is_in_the_reference():
    text = REFERENCE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^- `([a-z]+\.\w+)` \(", text, re.MULTILINE))
    profiled = set(re.findall(r"^- `PROFILE\.(\w+)` \(", text, re.MULTILINE))
    for group in (field.name for field in fields(Settings) if is_dataclass(getattr(Settings(), field.name))):
        for field in fields(getattr(Settings(), group)):
            named = field.name in profiled if group in PROFILES else f"{group}.{field.name}" in listed
            assert named, f"{group}.{field.name}"


@pytest.mark.parametrize("page", pages(), ids=name)
def test_a_setting_that_a_page_names_exists(page):
    groups = {field.name for field in fields(Settings)}
    for group, key in SETTING.findall(prose(page)):
        if group in groups and key != "py":
            assert hasattr(getattr(Settings(), group), key), f"{name(page)} names {group}.{key}"


@pytest.mark.parametrize("command", sorted(typer.main.get_command(app).commands))
def test_every_command_is_in_the_reference(command):
    assert re.search(rf"`holdfast {command}[` ]", REFERENCE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("error", errors.__all__)
def test_every_error_is_in_the_reference(error):
    assert re.search(rf"\b{error}\b", REFERENCE.read_text(encoding="utf-8"))


def test_the_pages_stay_short_enough_to_be_read():
    words = {name(page): len(page.read_text(encoding="utf-8").split()) for page in pages()}
    records = [page for page in words if page.startswith("docs/interfaces/transcripts/")]
    interfaces = {page: words.pop(page) for page in [*words] if page.startswith("docs/interfaces/")}
    assert words.pop("docs/scale.md") <= MOST_WORDS_OF_SCALE
    assert words["README.md"] <= MOST_WORDS_OF_THE_README
    assert {page: n for page, n in words.items() if "guides/" in page and n > MOST_WORDS_OF_A_GUIDE} == {}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda item: -item[1])
    assert sum(number for page, number in interfaces.items() if page not in records) <= MOST_WORDS_OF_INTERFACES


def test_the_picture_of_the_parts_points_down_only():
    architecture = program("scripts/architecture.py")
    layer = architecture.depths(architecture.parts())
    assert all(layer[below] < layer[part] for part, imported in architecture.parts().items() for below in imported)
    drawn = architecture.picture()
    for page in (ROOT / "docs" / "design" / "architecture.md", ROOT / "CONTRIBUTING.md"):
        assert drawn in page.read_text(encoding="utf-8"), f"{name(page)} is stale: run `make docs`"


@pytest.mark.parametrize("page", EVERY_PAGE, ids=name)
def test_every_link_leads_somewhere(page):
    for target in LINK.findall(prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.is_file(), f"{name(page)} links to {target}"
        assert linked.is_relative_to(ROOT), f"{name(page)} links to {target}, outside the repository"
        assert not anchor or anchor in anchors(linked), f"{name(page)} links to {target}; no such heading"


def test_the_picture_names_the_stages_as_the_code_does():
    texts = ET.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text")
    drawn = {text.text for text in texts if text.get("class") == "name"}
    source = "".join(map(inspect.getsource, (ingest, embedding, recall, Store)))
    assert {stage for stage in drawn - NOT_STAGES if not re.search(rf"\b_?{stage}\b", source)} == set()
