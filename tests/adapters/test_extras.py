"""An adapter whose framework is missing says what to install, and the package has that extra."""

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast import MissingExtraError

SOURCE = Path(holdfast.__file__).parent / "integrations"
FRAMEWORKS = {
    "langgraph": "langgraph.store.base", "langchain": "langchain_core.callbacks", "openai_agents": "agents.items",
    "llamaindex": "llama_index.core.base.llms.types", "pydantic_ai": "pydantic_ai", "adk": "google.adk.events",
}  # fmt: skip


@pytest.mark.parametrize("adapter", FRAMEWORKS)
def test_an_adapter_without_its_framework_says_what_to_install(adapter, monkeypatch):
    monkeypatch.setitem(sys.modules, FRAMEWORKS[adapter], None)
    monkeypatch.delitem(sys.modules, f"holdfast.integrations.{adapter}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"pip install '\.\[{adapter.replace('_', '-')}\]'"):
        importlib.import_module(f"holdfast.integrations.{adapter}")


def test_every_extra_that_is_named_is_one_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCE.glob("*.py"))
    named = set(re.findall(r'missing_package\("([a-z-]+)"', code))
    assert len(named) == len(FRAMEWORKS) + 1  # Anthropic's files need nothing, its SDK's tool does
    assert named <= project["optional-dependencies"].keys()
