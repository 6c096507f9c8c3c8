from pathlib import Path

import pytest

from holdfast.store.contract import Store
from holdfast.testing import StoreLifecycleContract
from postgres_server import Places


class TestPostgresLifecycle(StoreLifecycleContract):
    @pytest.fixture(autouse=True)
    def _places(self, postgres):
        with Places(postgres) as self.places:
            yield

    def open_store(self, place: Path) -> Store:
        return self.places.open(place)
