from holdfast.retrieval.hyperdimensional import HyperdimensionalStrategy
from holdfast.settings import Settings
from holdfast.testing import StrategyContract


class TestHyperdimensionalStrategy(StrategyContract):
    def make_strategy(self, settings: Settings) -> HyperdimensionalStrategy:
        return HyperdimensionalStrategy(settings)
