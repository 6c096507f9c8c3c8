"""What every store promises, of a store whose rows lie on three other servers."""

from pathlib import Path

import pytest

from holdfast.store.contract import Store
from holdfast.store.postgres.cluster import list_shards
from holdfast.testing import StoreContract, StoreLifecycleContract
from postgres_server import Places


class OnThreeServers:
    @pytest.fixture(autouse=True)
    def _places(self, cluster):
        with Places(cluster) as self.places:
            yield
            for store in self.places.opened:
                assert not store.database.is_usable() or list_shards(store.database)[0].tenants == 0

    def open_store(self, place: Path) -> Store:
        return self.places.open(place)


class TestStoreOnThreeServers(OnThreeServers, StoreContract):
    pass


class TestLifecycleOnThreeServers(OnThreeServers, StoreLifecycleContract):
    pass
