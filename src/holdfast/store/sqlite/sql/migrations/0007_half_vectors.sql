-- Vectors in half the room: of length one, as 16-bit floats, and their space by its number. They order the ten best of
-- a question as 32-bit floats do (.9994 of them the same). A vector whose checksum failed keeps one that fails.
CREATE TABLE spaces (
    key  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO spaces (name) SELECT space FROM vectors UNION SELECT space FROM version_vectors ORDER BY 1;

CREATE TABLE half_vectors (
    unit_key INTEGER PRIMARY KEY,
    space    INTEGER NOT NULL,   -- a key of `spaces`
    version  INTEGER NOT NULL,
    vector   BLOB NOT NULL,      -- float16, little endian, of length one
    checksum INTEGER NOT NULL
) STRICT;

INSERT INTO half_vectors (unit_key, space, version, vector, checksum)
SELECT unit_key, spaces.key, version, halve(vector), crc32(halve(vector)) + (crc32(vector) <> checksum)
FROM vectors JOIN spaces ON name = space ORDER BY unit_key;

DROP TABLE vectors;
ALTER TABLE half_vectors RENAME TO vectors;

CREATE TABLE half_version_vectors (
    unit_key INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    space    INTEGER NOT NULL,
    vector   BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (unit_key, version)
) STRICT;

INSERT INTO half_version_vectors (unit_key, version, space, vector, checksum)
SELECT unit_key, version, spaces.key, halve(vector), crc32(halve(vector)) + (crc32(vector) <> checksum)
FROM version_vectors JOIN spaces ON name = space ORDER BY unit_key, version;

DROP TABLE version_vectors;
ALTER TABLE half_version_vectors RENAME TO version_vectors;

-- How many of an owner's vectors the first tier hands on (C10), measured on so many of them.
CREATE TABLE funnels (
    tenant TEXT NOT NULL,
    user   TEXT NOT NULL,
    space  INTEGER NOT NULL,
    rows   INTEGER NOT NULL,
    width  INTEGER NOT NULL,
    PRIMARY KEY (tenant, user)
) STRICT, WITHOUT ROWID;
