import pytest

from holdfast.retrieval.lexical import LexicalStrategy
from holdfast.settings import Settings
from holdfast.testing import StrategyContract


class TestLexicalStrategy(StrategyContract):
    @pytest.fixture(autouse=True)
    def _sample(self, copied_sample):
        self.open_sample = copied_sample

    def make_strategy(self, settings: Settings) -> LexicalStrategy:
        return LexicalStrategy(settings)
