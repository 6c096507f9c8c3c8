"""What the suites of strategies ask about, made once: the model reads the sample history for a second."""

import shutil

import pytest

from holdfast import Memory, Settings, sample
from holdfast.testing.builders import Asker, view


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory):
    """Return a folder with a store of the sample history, to be copied."""
    folder = tmp_path_factory.mktemp("sample")
    with Memory.open(folder / "sample.db", settings=Settings()) as memory:
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
    return folder


@pytest.fixture
def copied_sample(sample_store):
    """Return a function that opens a copy of it in an empty folder, as `StrategyContract.open_sample` does."""

    def open_sample(place):
        shutil.copytree(sample_store, place, dirs_exist_ok=True)
        return Asker(Memory.open(place / "sample.db", settings=Settings()).store, view(sample.USER))

    return open_sample
