-- The vectors of earlier versions, kept as long as the versions are: questions about the past find by meaning too.
CREATE TABLE version_vectors (
    unit_key INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    space    TEXT NOT NULL,
    vector   BLOB NOT NULL,      -- float32, little endian, as the embedder gave it
    checksum INTEGER NOT NULL,
    PRIMARY KEY (unit_key, version)
) STRICT;
