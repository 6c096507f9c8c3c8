-- A store on PostgreSQL. Whatever belongs to a tenant is named by the tenant first. No two indexes may serve the same
-- lookup: a plan that is made once for all owners would choose by the size of a mean one.
-- Names compare by bytes (COLLATE "C"), as in SQLite, and so do moments, which are ISO texts in UTC.

-- What the whole store agrees on: the embedding space that is searched, its identity, the analysis it was derived with.
CREATE TABLE agreements (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE spaces (
    key  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- How much a tenant may keep; no row before its first write.
CREATE TABLE tenants (
    tenant     text COLLATE "C" PRIMARY KEY,
    most_units bigint
);

-- Copies that the engine made, files of the machine `host`: an erasure has to reach them too (C19). `identity` tells
-- whether the file is still that copy.
CREATE TABLE backups (
    host     text COLLATE "C" NOT NULL,
    path     text COLLATE "C" NOT NULL,
    made_at  text NOT NULL,
    identity text NOT NULL,
    PRIMARY KEY (host, path)
);

-- What a backup has yet to lose: written with the erasure, gone when the copy has been reached.
CREATE TABLE copies (
    host   text COLLATE "C" NOT NULL,
    path   text COLLATE "C" NOT NULL,
    kind   text NOT NULL,   -- unit, document or owner
    tenant text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    FOREIGN KEY (host, path) REFERENCES backups ON DELETE CASCADE
);

CREATE SEQUENCE unit_keys;
CREATE SEQUENCE document_keys;

-- The truth. `body` is a unit as JSON, `checksum` its CRC-32; the other columns repeat what is searched by.
-- "user" is '' for everyone's units, `agent` is '' for a unit that all agents share.
CREATE TABLE units (
    tenant         text COLLATE "C" NOT NULL,
    key            bigint NOT NULL,
    "user"         text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    version        integer NOT NULL,
    session        text COLLATE "C",
    position       bigint NOT NULL,
    event_time     text COLLATE "C" NOT NULL,
    body           text NOT NULL,
    checksum       bigint NOT NULL,
    document       text COLLATE "C",
    agent          text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    scope          text COLLATE "C" NOT NULL,
    recorded_time  text COLLATE "C" NOT NULL,
    expires_at     text COLLATE "C" NOT NULL,   -- '~', after every moment, for a unit that stays or is pinned
    valid_from     text COLLATE "C" NOT NULL,   -- '' without one
    valid_to       text COLLATE "C" NOT NULL,   -- '~' without one
    metadata       jsonb NOT NULL,              -- for filters
    superseded_by  text COLLATE "C",
    superseded_at  text COLLATE "C",
    superseded_why text,
    covered_by     text COLLATE "C",
    covered_at     text COLLATE "C",
    gate           text,
    access_count   bigint NOT NULL
);
CREATE UNIQUE INDEX ON units (tenant, key);
CREATE UNIQUE INDEX ON units (tenant, "user", id);
CREATE INDEX ON units (tenant, "user", event_time, position);
CREATE INDEX ON units (tenant, "user", session, event_time, position, key) WHERE session IS NOT NULL;
CREATE INDEX ON units (tenant, "user", agent, key) WHERE document IS NULL AND kind = 'turn' AND session IS NULL;
CREATE INDEX ON units (tenant, "user", session, agent, key) WHERE document IS NULL AND kind = 'turn';
CREATE INDEX ON units (tenant, "user", access_count) WHERE access_count > 0;
CREATE INDEX ON units (tenant, "user", covered_by) WHERE covered_by IS NOT NULL;
CREATE INDEX ON units (tenant, "user", superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX ON units (tenant, "user", document, id) WHERE document IS NOT NULL;
CREATE INDEX ON units (tenant, "user") WHERE kind = 'summary';

CREATE TABLE versions (
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    version  integer NOT NULL,
    body     text NOT NULL,
    checksum bigint NOT NULL
);
CREATE UNIQUE INDEX ON versions (tenant, unit_key, version);

-- Vectors are stored truth (C10): of length one, 16 bits a number. One for each unit, of the version it was made from.
CREATE TABLE vectors (
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    space    integer NOT NULL,
    version  integer NOT NULL,
    vector   halfvec NOT NULL,
    checksum bigint NOT NULL   -- CRC-32 of its numbers, little endian, as every store has it
);
ALTER TABLE vectors ALTER COLUMN vector SET STORAGE PLAIN;  -- compared as it lies: nothing to unpack
CREATE UNIQUE INDEX ON vectors (tenant, unit_key);
CREATE INDEX ON vectors (tenant, "user", space);

CREATE TABLE version_vectors (
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    version  integer NOT NULL,
    space    integer NOT NULL,
    vector   halfvec NOT NULL,
    checksum bigint NOT NULL
);
CREATE UNIQUE INDEX ON version_vectors (tenant, unit_key, version);

-- Times in which a unit was superseded, ended by a reinstatement (C19).
CREATE TABLE absences (
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    by       text COLLATE "C" NOT NULL,
    since    text COLLATE "C" NOT NULL,
    until    text COLLATE "C" NOT NULL
);
CREATE INDEX ON absences (tenant, unit_key);

CREATE TABLE documents (
    tenant   text COLLATE "C" NOT NULL,
    key      bigint NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    path     text NOT NULL,
    core     integer NOT NULL,
    body     bytea NOT NULL,
    checksum bigint NOT NULL,
    given_to text NOT NULL
);
CREATE UNIQUE INDEX ON documents (tenant, key);
CREATE UNIQUE INDEX ON documents (tenant, "user", name);

-- ------------------------------------------------------------------------------------------ derived from here on

-- What is known of a unit's present words. `content` is the checksum of the body that it was derived from.
-- `terms`, `fields` and `tfs` go together: how often a field (its place in FIELDS) holds a term.
CREATE TABLE entries (
    tenant         text COLLATE "C" NOT NULL,
    unit_key       bigint NOT NULL,
    "user"         text COLLATE "C" NOT NULL,
    content        bigint NOT NULL,
    author         text COLLATE "C" NOT NULL,
    speaker        text COLLATE "C" NOT NULL,
    role           text COLLATE "C" NOT NULL,
    agent          text COLLATE "C" NOT NULL,
    event_us       bigint NOT NULL,     -- microseconds since 1970
    starts_us      bigint NOT NULL,     -- of a summary, of what it covers; else as event_us
    ends_us        bigint NOT NULL,
    decay_rate     double precision,
    length         integer NOT NULL,
    said           bigint NOT NULL,
    stating        smallint NOT NULL,
    anchor_density real NOT NULL,
    lengths        integer[] NOT NULL,
    terms          text[] COLLATE "C" NOT NULL,
    fields         smallint[] NOT NULL,
    tfs            integer[] NOT NULL,
    impacts        real[] NOT NULL,     -- of the postings, by which they are found again
    topic          bit(4096),           -- hypervectors (C5)
    claim          bit(4096),
    acts           text[] NOT NULL
);
ALTER TABLE entries ALTER COLUMN topic SET STORAGE MAIN, ALTER COLUMN claim SET STORAGE MAIN;
CREATE UNIQUE INDEX ON entries (tenant, unit_key);
CREATE INDEX ON entries (tenant, "user", unit_key);
CREATE INDEX ON entries (tenant, "user", stating) WHERE stating > 0;

-- One row for each term and field of a unit. `impact` orders the postings of a term: the term-frequency part of BM25 for
-- a fixed average length, so that it holds whatever is written later. `low` and `high` are 128 bits, one of which each term
-- of the unit sets: they tell which other terms it may hold.
CREATE TABLE postings (
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    term     text COLLATE "C" NOT NULL,
    impact   real NOT NULL,
    unit_key bigint NOT NULL,
    field    smallint NOT NULL,
    role     smallint NOT NULL,   -- of the unit, its place in ROLES: some questions prefer some
    tf       integer NOT NULL,
    length   integer NOT NULL,
    low      bigint NOT NULL,
    high     bigint NOT NULL
);
CREATE INDEX ON postings (tenant, "user", term, impact DESC)
    INCLUDE (unit_key, low, high, field, role, tf, length);

-- Exact statistics of an owner and agent. kind: 't' df of a term, 's' units of a speaker, 'f' terms in a field (its
-- number as name), 'u' units.
CREATE TABLE counts (
    tenant text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    agent  text COLLATE "C" NOT NULL,
    kind   "char" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL
) WITH (fillfactor = 70);  -- rows that change again and again stay on their page
CREATE UNIQUE INDEX ON counts (tenant, "user", kind, name, agent);

-- What units are called ('c') and what they mention ('m') (C12).
CREATE TABLE names (
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    kind     "char" NOT NULL,
    unit_key bigint NOT NULL
);
CREATE INDEX ON names (tenant, "user", name, kind) INCLUDE (unit_key);
CREATE INDEX ON names (tenant, unit_key);

-- What units state (C8). `tokens` are those of both symbols.
CREATE TABLE facts (
    tenant     text COLLATE "C" NOT NULL,
    "user"     text COLLATE "C" NOT NULL,
    unit_key   bigint NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    relation   text COLLATE "C" NOT NULL,
    object     text COLLATE "C" NOT NULL,
    confidence double precision NOT NULL
);
CREATE INDEX ON facts (tenant, "user", subject, object) INCLUDE (relation, confidence, unit_key);
CREATE INDEX ON facts (tenant, "user", object, subject) INCLUDE (relation, confidence, unit_key);
CREATE INDEX ON facts (tenant, unit_key);

-- The words of symbols, for `Facts.symbols_with`: one row for each word of a symbol that a fact of a unit has.
CREATE TABLE symbols (
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    token    text COLLATE "C" NOT NULL,
    symbol   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    tokens   smallint NOT NULL    -- how many words the symbol has
);
CREATE INDEX ON symbols (tenant, "user", token, symbol) INCLUDE (unit_key, tokens);
CREATE INDEX ON symbols (tenant, unit_key);

-- Units that have no vector of their present words in the space that is searched.
CREATE TABLE waiting (
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL
);
CREATE UNIQUE INDEX ON waiting (tenant, unit_key);
