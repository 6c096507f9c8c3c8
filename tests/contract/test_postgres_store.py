from pathlib import Path

import pytest

from holdfast.store.contract import Store
from holdfast.testing import StoreContract
from postgres_server import Places


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _places(self, postgres):
        with Places(postgres) as self.places:
            yield

    def open_store(self, place: Path) -> Store:
        return self.places.open(place)
