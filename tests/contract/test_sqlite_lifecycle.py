from pathlib import Path

import pytest

from holdfast.derivation import derivation
from holdfast.settings import Settings
from holdfast.store.sqlite import SqliteStore
from holdfast.testing import StoreLifecycleContract


class TestSqliteLifecycle(StoreLifecycleContract):
    def open_store(self, place: Path) -> SqliteStore:
        settings = Settings()
        return SqliteStore.open(place / "store.db", settings.store, derivation(settings))

    @pytest.mark.xfail(strict=True, reason="a turn that is erased after its summary is reported as uncovered")
    def test_what_is_erased_together_is_not_reported_as_uncovered(self, tmp_path: Path) -> None:
        super().test_what_is_erased_together_is_not_reported_as_uncovered(tmp_path)
