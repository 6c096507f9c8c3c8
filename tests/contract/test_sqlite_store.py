from collections.abc import Mapping
from pathlib import Path

from holdfast.openers import derivation
from holdfast.settings import Settings
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.testing import StoreContract


class TestSqliteStore(StoreContract):
    patience: Mapping[str, object] = {}

    def open_store(self, place: Path) -> SqliteStore:
        settings = Settings.load(self.patience, environ={})
        return SqliteStore.open(place / "store.db", settings.store, derivation(settings))

    def test_a_reading_is_one_state_while_others_write_and_the_next_one_sees_it(self, tmp_path: Path) -> None:
        self.patience = {"store.busy_timeout_ms": 200}  # an erasure waits so long for the reading, in vain
        super().test_a_reading_is_one_state_while_others_write_and_the_next_one_sees_it(tmp_path)
