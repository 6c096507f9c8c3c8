-- Vectors are stored truth (C10): never silently recomputed. One for each unit, in the space it names, for the
-- version of the words it was made from; a unit without a fitting row is waiting to be embedded.
CREATE TABLE vectors (
    unit_key INTEGER PRIMARY KEY,
    space    TEXT NOT NULL,
    version  INTEGER NOT NULL,
    vector   BLOB NOT NULL,      -- float32, little endian, as the embedder gave it
    checksum INTEGER NOT NULL
) STRICT;

-- What the whole store agrees on: `space`, the one embedding space that is searched.
CREATE TABLE agreements (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
