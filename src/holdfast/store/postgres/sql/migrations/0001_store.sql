-- A store on PostgreSQL. Each table is a partitioned parent; its rows lie in leaves, one for each shard, and a shard may
-- lie on another server. A tenant's rows are in one shard (`tenants`). Parents have no index of their own, because a
-- parent with a unique index cannot have a foreign leaf: `leaf.sql` makes them.
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

-- Where leaves lie: here, or at a server that `server` names (postgres_fdw).
CREATE TABLE shards (
    shard   smallint PRIMARY KEY,
    server  text UNIQUE,
    address text,   -- of that server, without a password; for what cannot be done through a foreign table
    takes_tenants boolean NOT NULL DEFAULT true
);

-- Which shard has a tenant's rows, and how much it may keep; no row before its first write.
CREATE TABLE tenants (
    tenant     text COLLATE "C" PRIMARY KEY,
    shard      smallint NOT NULL REFERENCES shards,
    most_units bigint
);

-- Rows of a tenant in a shard that is not its own: of a move that did not end, or that it has left. When they are
-- deleted, their bytes are there until the tables are written anew.
CREATE TABLE moves (
    shard   smallint NOT NULL REFERENCES shards,
    tenant  text COLLATE "C" NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (shard, tenant)
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
    shard          smallint NOT NULL,
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
) PARTITION BY LIST (shard);

CREATE TABLE versions (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    version  integer NOT NULL,
    body     text NOT NULL,
    checksum bigint NOT NULL
) PARTITION BY LIST (shard);

-- Vectors are stored truth (C10): of length one, 16 bits a number. One for each unit, of the version it was made from.
CREATE TABLE vectors (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    space    integer NOT NULL,
    version  integer NOT NULL,
    vector   halfvec NOT NULL,
    checksum bigint NOT NULL   -- CRC-32 of its numbers, little endian, as every store has it
) PARTITION BY LIST (shard);

CREATE TABLE version_vectors (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    version  integer NOT NULL,
    space    integer NOT NULL,
    vector   halfvec NOT NULL,
    checksum bigint NOT NULL
) PARTITION BY LIST (shard);

-- Times in which a unit was superseded, ended by a reinstatement (C19).
CREATE TABLE absences (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    by       text COLLATE "C" NOT NULL,
    since    text COLLATE "C" NOT NULL,
    until    text COLLATE "C" NOT NULL
) PARTITION BY LIST (shard);

CREATE TABLE documents (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    key      bigint NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    path     text NOT NULL,
    core     integer NOT NULL,
    body     bytea NOT NULL,
    checksum bigint NOT NULL,
    given_to text NOT NULL
) PARTITION BY LIST (shard);

-- ------------------------------------------------------------------------------------------ derived from here on

-- What is known of a unit's present words. `content` is the checksum of the body that it was derived from.
-- `terms`, `fields` and `tfs` go together: how often a field (its place in FIELDS) holds a term.
CREATE TABLE entries (
    shard          smallint NOT NULL,
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
) PARTITION BY LIST (shard);

-- One row for each term and field of a unit. `impact` orders the postings of a term: the term-frequency part of BM25 for
-- a fixed average length, so that it holds whatever is written later. `low` and `high` are 128 bits, one of which each term
-- of the unit sets: they tell which other terms it may hold.
CREATE TABLE postings (
    shard    smallint NOT NULL,
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
) PARTITION BY LIST (shard);

-- Exact statistics of an owner and agent. kind: 't' df of a term, 's' units of a speaker, 'f' terms in a field (its
-- number as name), 'u' units.
CREATE TABLE counts (
    shard  smallint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    agent  text COLLATE "C" NOT NULL,
    kind   "char" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL
) PARTITION BY LIST (shard);

-- What units are called ('c') and what they mention ('m') (C12).
CREATE TABLE names (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    kind     "char" NOT NULL,
    unit_key bigint NOT NULL
) PARTITION BY LIST (shard);

-- What units state (C8). `tokens` are those of both symbols.
CREATE TABLE facts (
    shard      smallint NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    "user"     text COLLATE "C" NOT NULL,
    unit_key   bigint NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    relation   text COLLATE "C" NOT NULL,
    object     text COLLATE "C" NOT NULL,
    confidence double precision NOT NULL
) PARTITION BY LIST (shard);

-- The words of symbols, for `Facts.symbols_with`: one row for each word of a symbol that a fact of a unit has.
CREATE TABLE symbols (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    token    text COLLATE "C" NOT NULL,
    symbol   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    tokens   smallint NOT NULL    -- how many words the symbol has
) PARTITION BY LIST (shard);

-- Units that have no vector of their present words in the space that is searched.
CREATE TABLE waiting (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL
) PARTITION BY LIST (shard);

-- What a reading needs of the store besides its tenant's rows is known at every server that has tenants.
CREATE FUNCTION tell_shards() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    far smallint;
BEGIN
    IF TG_TABLE_NAME = 'agreements' AND coalesce(NEW.name, OLD.name) <> 'space' THEN
        RETURN NULL;
    END IF;
    FOR far IN SELECT shard FROM holdfast.shards WHERE server IS NOT NULL LOOP
        -- Before an insertion too: a server that failed has forgotten what the others have.
        EXECUTE format('DELETE FROM holdfast.%I WHERE name = $1', TG_TABLE_NAME || '_' || far)
            USING coalesce(OLD.name, NEW.name);
        IF TG_OP <> 'DELETE' THEN
            EXECUTE format('INSERT INTO holdfast.%I SELECT ($1).*', TG_TABLE_NAME || '_' || far) USING NEW;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER tell_shards AFTER INSERT OR UPDATE OR DELETE ON spaces FOR EACH ROW EXECUTE FUNCTION tell_shards();
CREATE TRIGGER tell_shards AFTER INSERT OR UPDATE OR DELETE ON agreements FOR EACH ROW EXECUTE FUNCTION tell_shards();

INSERT INTO shards (shard) VALUES (0);
