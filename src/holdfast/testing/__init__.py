"""Contract suites for third parties: a store, a strategy or an embedder that passes is one of ours.

    from holdfast.testing import StoreContract

    class TestMyStore(StoreContract):
        def open_store(self, place): return MyStore(place)

The suites need pytest to run them and import nothing of it.
"""

from holdfast.testing.contracts import EmbedderContract, StrategyContract
from holdfast.testing.lifecycle_contract import StoreLifecycleContract
from holdfast.testing.store_contract import StoreContract

__all__ = ["EmbedderContract", "StoreContract", "StoreLifecycleContract", "StrategyContract"]
