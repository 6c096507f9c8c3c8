import pytest

from holdfast.retrieval.hyperdimensional import HyperdimensionalStrategy
from holdfast.settings import Settings
from holdfast.testing import StrategyContract


class TestHyperdimensionalStrategy(StrategyContract):
    @pytest.fixture(autouse=True)
    def _sample(self, copied_sample):
        self.open_sample = copied_sample

    def make_strategy(self, settings: Settings) -> HyperdimensionalStrategy:
        return HyperdimensionalStrategy(settings)
