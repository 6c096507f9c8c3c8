-- What is derived from the words of a unit's current version, so that opening a store analyses nothing twice. A row
-- that was made of other content, or in another way, is not read, and is written again.
CREATE TABLE analyses (
    unit_key      INTEGER PRIMARY KEY,
    content       INTEGER NOT NULL,   -- the checksum of the unit that it was made of
    derivation    INTEGER NOT NULL,   -- a checksum of how it was made
    analysis      BLOB NOT NULL,      -- JSON
    analysis_crc  INTEGER NOT NULL
) STRICT;

-- Nothing that was derived outlives its unit, whoever deletes it.
CREATE TRIGGER erase_analysis AFTER DELETE ON units BEGIN
    DELETE FROM analyses WHERE unit_key = old.key;
END;
