"""What every store promises, of a store whose rows lie on three other servers."""

from pathlib import Path

import pytest

from holdfast.store.contract import Store
from holdfast.testing import StoreContract, StoreLifecycleContract
from postgres_server import Cluster, Places


class OnThreeServers:
    @pytest.fixture(autouse=True)
    def _places(self, postgres, far_postgres):
        with Cluster(postgres, far_postgres) as cluster, Places(cluster) as self.places:
            yield

    def open_store(self, place: Path) -> Store:
        return self.places.open(place)


class TestStoreOnThreeServers(OnThreeServers, StoreContract):
    pass


class TestLifecycleOnThreeServers(OnThreeServers, StoreLifecycleContract):
    pass
