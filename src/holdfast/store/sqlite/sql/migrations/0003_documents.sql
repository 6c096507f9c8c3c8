-- Documents that were taken in (C14). The rules of those declared core go into every context of their owner, in the
-- order they were declared in; the others are here to see what a later reading no longer has.
-- `body` is the document as it was last read; `path` is where to look for a newer one, empty for a given text.
CREATE TABLE documents (
    key      INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    user     TEXT NOT NULL,   -- '' for a document of everyone's
    name     TEXT NOT NULL,
    path     TEXT NOT NULL,
    core     INTEGER NOT NULL,
    body     BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    UNIQUE (tenant, user, name)
) STRICT;

-- The highest access count of an owner (C11), without looking at every unit.
CREATE INDEX units_accessed ON units (tenant, user, access_count) WHERE access_count > 0;

-- When a unit was superseded, for reads of the past (C19); until now, when the unit that superseded it was recorded.
ALTER TABLE units ADD COLUMN superseded_at TEXT;
UPDATE units SET superseded_at = (
    SELECT json_extract(newer.body, '$.recorded_time') FROM units AS newer
    WHERE newer.tenant = units.tenant AND newer.user = units.user AND newer.id = units.superseded_by
) WHERE superseded_by IS NOT NULL;
