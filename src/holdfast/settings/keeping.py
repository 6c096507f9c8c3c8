"""Settings of the write path and the store: how units are kept."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import SettingsError
from holdfast.settings.fields import setting, within


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """Limits of what is taken in."""

    max_text_bytes: int = setting(1_048_576, "longest text of one unit, in UTF-8 bytes; longer is refused whole")
    max_metadata_bytes: int = setting(65_536, "largest metadata of one unit, as JSON bytes")
    retry_seconds: float = setting(
        60.0, "one message that repeats its session's last turn sooner is a call tried again, and kept once; 0: never"
    )
    max_parts_bytes: int = setting(
        8_388_608, "largest structured content of one message (tool calls, pictures), as JSON bytes"
    )
    redact: bool = setting(default=False, doc="take keys, tokens and passwords out of what is written")

    def __post_init__(self) -> None:
        within("ingest.max_text_bytes", self.max_text_bytes, 1)
        within("ingest.max_metadata_bytes", self.max_metadata_bytes, 2)
        within("ingest.retry_seconds", self.retry_seconds, 0)
        within("ingest.max_parts_bytes", self.max_parts_bytes, 2)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The store (architecture)."""

    path: str = setting("holdfast.db", "database file used when none is named; `:memory:` keeps nothing")
    tenant: str = setting("local", "tenant used when none is named")
    user: str = setting("me", "whose memory the command line opens when none is named; a program always names one")
    busy_timeout_ms: int = setting(10_000, "how long to wait for another process's write before giving up")

    def __post_init__(self) -> None:
        within("store.busy_timeout_ms", self.busy_timeout_ms, 0)
        for name in ("path", "tenant", "user"):
            if not getattr(self, name):
                raise SettingsError(f"store.{name} is empty; give it a name or leave the key out")
