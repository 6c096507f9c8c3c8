"""The docs say what the program does: commands, Python blocks, names, links and the picture."""

import inspect
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
import typer
from blocks import ROOT, outputs, pages, pages_with_python, shown

from holdfast import Settings, errors, ingest, recall
from holdfast.interfaces.cli import app
from holdfast.store.contract import Store

REFERENCE = ROOT / "docs" / "reference.md"
PICTURE = ROOT / "docs" / "img" / "pipeline.svg"
EVERY_PAGE = [*pages(), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
GENERATED = re.compile(r"<!-- run: .+? -->\n.*?<!-- end -->", re.DOTALL)
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


def test_the_console_blocks_show_what_the_commands_print():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_console_block_is_generated(page):
    assert "```console" not in GENERATED.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", pages_with_python(), ids=name)
def test_the_python_blocks_run_and_print_what_the_page_says(page):
    printed, contract_tests = outputs(page)
    assert printed == shown(page), "if the new output is right: python tests/docs/blocks.py"
    assert bool(contract_tests) == ("Contract):" in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", [row.key for row in Settings().describe()])
def test_every_setting_is_in_the_reference(key):
    assert f"`{key}`" in REFERENCE.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", sorted(typer.main.get_command(app).commands))
def test_every_command_is_in_the_reference(command):
    assert f"`holdfast {command}`" in REFERENCE.read_text(encoding="utf-8")


@pytest.mark.parametrize("error", errors.__all__)
def test_every_error_is_in_the_reference(error):
    assert f"`{error}`" in REFERENCE.read_text(encoding="utf-8")


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
    source = inspect.getsource(ingest) + inspect.getsource(recall) + inspect.getsource(Store)
    assert {stage for stage in drawn - NOT_STAGES if not re.search(rf"\b_?{stage}\b", source)} == set()
