from pathlib import Path

from holdfast.openers import derivation
from holdfast.settings import Settings
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.testing import StoreContract


class TestSqliteStore(StoreContract):
    def open_store(self, place: Path) -> SqliteStore:
        settings = Settings()
        return SqliteStore.open(place / "store.db", settings.store, derivation(settings))
