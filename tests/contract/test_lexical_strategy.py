from holdfast.retrieval.lexical import LexicalStrategy
from holdfast.settings import Settings
from holdfast.testing import StrategyContract


class TestLexicalStrategy(StrategyContract):
    def make_strategy(self, settings: Settings) -> LexicalStrategy:
        return LexicalStrategy(settings)
