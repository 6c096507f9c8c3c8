"""Adapters with the frameworks that they are for: they run where `make test-hosts` says these are installed."""

import os
import sys
from pathlib import Path

import pytest

from builders import opened

collect_ignore_glob = [] if "HOLDFAST_ADAPTERS" in os.environ else ["test_*"]
sys.path.append(str(Path(__file__).parents[1]))  # the fake model of the other hosts


@pytest.fixture
def memory():
    """A memory that keeps nothing and finds by words."""
    with opened() as memory:
        yield memory
