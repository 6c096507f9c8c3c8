"""The examples of docs/interfaces/adapters.md that need frameworks run, and the versions are those installed."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from agents import set_default_openai_api, set_default_openai_client, set_tracing_disabled
from fake_model import FakeModel
from openai import AsyncOpenAI

from holdfast import Memory

PAGE = (Path(__file__).parents[3] / "docs" / "interfaces" / "adapters.md").read_text(encoding="utf-8")
BLOCKS = {
    section.partition("\n")[0]: block[1]
    for section in PAGE.split("\n## ")[1:]
    if (block := re.search(r"^```py\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))
}
PACKAGES = {"pydantic-ai": "pydantic-ai-slim"}


@pytest.mark.parametrize("section", BLOCKS)
def test_an_example_runs(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    set_tracing_disabled(disabled=True)
    with FakeModel() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        set_default_openai_client(AsyncOpenAI(base_url=model.url, api_key="none"), use_for_tracing=False)
        set_default_openai_api("chat_completions")
        names = {}
        exec(compile(BLOCKS[section], section, "exec"), names)
    [store] = tmp_path.glob("*.db")
    if section in ("OpenAI Agents", "Pydantic AI"):
        with Memory.open(store) as memory:
            assert "My boat is called Petrel." in [unit.text for unit in memory.list(user="ana", limit=None)]


def test_the_versions_of_the_page_are_those_that_were_tried():
    named = re.findall(r"([a-z0-9-]+) (\d+\.\d+\.\d+)", PAGE)
    assert len(named) == 9
    assert {name: version(PACKAGES.get(name, name)) for name, _ in named} == dict(named)
