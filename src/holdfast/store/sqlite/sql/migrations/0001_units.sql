-- Units, their earlier versions, and the feed of changes that every process follows.

-- `body` is the truth, as JSON, and `checksum` is its CRC-32. The other columns repeat what SQL has to search by.
-- `user` is '' for a global unit: a key column cannot be unique over NULL.
CREATE TABLE units (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: the feed of changes names it
    tenant        TEXT NOT NULL,
    user          TEXT NOT NULL,
    id            TEXT NOT NULL,
    version       INTEGER NOT NULL,
    session       TEXT,
    position      INTEGER NOT NULL,
    event_time    TEXT NOT NULL,
    body          TEXT NOT NULL,
    checksum      INTEGER NOT NULL,
    superseded_by TEXT,
    access_count  INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, user, id)
) STRICT;

CREATE INDEX units_in_order ON units (tenant, user, event_time, position, id);
CREATE INDEX units_in_session ON units (tenant, user, session, event_time, position, id);

CREATE TABLE versions (
    unit_key INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    body     TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (unit_key, version)
) STRICT, WITHOUT ROWID;

-- "This unit is not what it was": a follower reads it again. Writers are serial, so `seq` is commit order.
CREATE TABLE changes (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    user     TEXT NOT NULL,
    unit_key INTEGER NOT NULL,
    mark     INTEGER NOT NULL DEFAULT (random())  -- tells two histories apart after an older copy was restored
) STRICT;
