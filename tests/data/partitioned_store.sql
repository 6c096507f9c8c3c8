-- A store on one server as schema 1 made it: in partitions, all of whose rows have the number 0.
CREATE SCHEMA holdfast;
SET search_path = holdfast, public;
CREATE TABLE migrations (number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
INSERT INTO migrations (number) VALUES (1);

CREATE TABLE agreements (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE spaces (
    key  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE shards (
    shard   smallint PRIMARY KEY,
    server  text UNIQUE,
    address text,
    takes_tenants boolean NOT NULL DEFAULT true
);

CREATE TABLE tenants (
    tenant     text COLLATE "C" PRIMARY KEY,
    shard      smallint NOT NULL REFERENCES shards,
    most_units bigint
);

CREATE TABLE moves (
    shard   smallint NOT NULL REFERENCES shards,
    tenant  text COLLATE "C" NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (shard, tenant)
);

CREATE TABLE backups (
    host     text COLLATE "C" NOT NULL,
    path     text COLLATE "C" NOT NULL,
    made_at  text NOT NULL,
    identity text NOT NULL,
    PRIMARY KEY (host, path)
);

CREATE TABLE copies (
    host   text COLLATE "C" NOT NULL,
    path   text COLLATE "C" NOT NULL,
    kind   text NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    FOREIGN KEY (host, path) REFERENCES backups ON DELETE CASCADE
);

CREATE SEQUENCE unit_keys;
CREATE SEQUENCE document_keys;

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
    expires_at     text COLLATE "C" NOT NULL,
    valid_from     text COLLATE "C" NOT NULL,
    valid_to       text COLLATE "C" NOT NULL,
    metadata       jsonb NOT NULL,
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

CREATE TABLE vectors (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    space    integer NOT NULL,
    version  integer NOT NULL,
    vector   halfvec NOT NULL,
    checksum bigint NOT NULL
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
    event_us       bigint NOT NULL,
    starts_us      bigint NOT NULL,
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
    impacts        real[] NOT NULL,
    topic          bit(4096),
    claim          bit(4096),
    acts           text[] NOT NULL
) PARTITION BY LIST (shard);

CREATE TABLE postings (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    term     text COLLATE "C" NOT NULL,
    impact   real NOT NULL,
    unit_key bigint NOT NULL,
    field    smallint NOT NULL,
    role     smallint NOT NULL,
    tf       integer NOT NULL,
    length   integer NOT NULL,
    low      bigint NOT NULL,
    high     bigint NOT NULL
) PARTITION BY LIST (shard);

CREATE TABLE counts (
    shard  smallint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    agent  text COLLATE "C" NOT NULL,
    kind   "char" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL
) PARTITION BY LIST (shard);

CREATE TABLE names (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    kind     "char" NOT NULL,
    unit_key bigint NOT NULL
) PARTITION BY LIST (shard);

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

CREATE TABLE symbols (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    "user"   text COLLATE "C" NOT NULL,
    token    text COLLATE "C" NOT NULL,
    symbol   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL,
    tokens   smallint NOT NULL
) PARTITION BY LIST (shard);

CREATE TABLE waiting (
    shard    smallint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    unit_key bigint NOT NULL
) PARTITION BY LIST (shard);

CREATE FUNCTION tell_shards() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    far smallint;
BEGIN
    IF TG_TABLE_NAME = 'agreements' AND coalesce(NEW.name, OLD.name) <> 'space' THEN
        RETURN NULL;
    END IF;
    FOR far IN SELECT shard FROM holdfast.shards WHERE server IS NOT NULL LOOP

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

CREATE TABLE units_0 (LIKE units);
CREATE UNIQUE INDEX ON units_0 (tenant, key);
CREATE UNIQUE INDEX ON units_0 (tenant, "user", id);
CREATE INDEX ON units_0 (tenant, "user", event_time, position);
CREATE INDEX ON units_0 (tenant, "user", session, event_time, position, key) WHERE session IS NOT NULL;
CREATE INDEX ON units_0 (tenant, "user", agent, key) WHERE document IS NULL AND kind = 'turn' AND session IS NULL;
CREATE INDEX ON units_0 (tenant, "user", session, agent, key) WHERE document IS NULL AND kind = 'turn';
CREATE INDEX ON units_0 (tenant, "user", access_count) WHERE access_count > 0;
CREATE INDEX ON units_0 (tenant, "user", covered_by) WHERE covered_by IS NOT NULL;
CREATE INDEX ON units_0 (tenant, "user", superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX ON units_0 (tenant, "user", document, id) WHERE document IS NOT NULL;
CREATE INDEX ON units_0 (tenant, "user") WHERE kind = 'summary';

CREATE TABLE versions_0 (LIKE versions);
CREATE UNIQUE INDEX ON versions_0 (tenant, unit_key, version);

CREATE TABLE vectors_0 (LIKE vectors);
ALTER TABLE vectors_0 ALTER COLUMN vector SET STORAGE PLAIN;
CREATE UNIQUE INDEX ON vectors_0 (tenant, unit_key);
CREATE INDEX ON vectors_0 (tenant, "user", space);

CREATE TABLE version_vectors_0 (LIKE version_vectors);
CREATE UNIQUE INDEX ON version_vectors_0 (tenant, unit_key, version);

CREATE TABLE absences_0 (LIKE absences);
CREATE INDEX ON absences_0 (tenant, unit_key);

CREATE TABLE documents_0 (LIKE documents);
CREATE UNIQUE INDEX ON documents_0 (tenant, key);
CREATE UNIQUE INDEX ON documents_0 (tenant, "user", name);

CREATE TABLE entries_0 (LIKE entries);
ALTER TABLE entries_0 ALTER COLUMN topic SET STORAGE MAIN, ALTER COLUMN claim SET STORAGE MAIN;
CREATE UNIQUE INDEX ON entries_0 (tenant, unit_key);
CREATE INDEX ON entries_0 (tenant, "user", unit_key);
CREATE INDEX ON entries_0 (tenant, "user", stating) WHERE stating > 0;

CREATE TABLE postings_0 (LIKE postings);
CREATE INDEX ON postings_0 (tenant, "user", term, impact DESC)
    INCLUDE (unit_key, low, high, shard, field, role, tf, length);

CREATE TABLE counts_0 (LIKE counts) WITH (fillfactor = 70);
CREATE UNIQUE INDEX ON counts_0 (tenant, "user", kind, name, agent);

CREATE TABLE names_0 (LIKE names);
CREATE INDEX ON names_0 (tenant, "user", name, kind) INCLUDE (unit_key, shard);
CREATE INDEX ON names_0 (tenant, unit_key);

CREATE TABLE facts_0 (LIKE facts);
CREATE INDEX ON facts_0 (tenant, "user", subject, object) INCLUDE (relation, confidence, unit_key, shard);
CREATE INDEX ON facts_0 (tenant, "user", object, subject) INCLUDE (relation, confidence, unit_key, shard);
CREATE INDEX ON facts_0 (tenant, unit_key);

CREATE TABLE symbols_0 (LIKE symbols);
CREATE INDEX ON symbols_0 (tenant, "user", token, symbol) INCLUDE (unit_key, tokens, shard);
CREATE INDEX ON symbols_0 (tenant, unit_key);

CREATE TABLE waiting_0 (LIKE waiting);
CREATE UNIQUE INDEX ON waiting_0 (tenant, unit_key);

ALTER TABLE units ATTACH PARTITION units_0 FOR VALUES IN (0);
ALTER TABLE versions ATTACH PARTITION versions_0 FOR VALUES IN (0);
ALTER TABLE vectors ATTACH PARTITION vectors_0 FOR VALUES IN (0);
ALTER TABLE version_vectors ATTACH PARTITION version_vectors_0 FOR VALUES IN (0);
ALTER TABLE absences ATTACH PARTITION absences_0 FOR VALUES IN (0);
ALTER TABLE documents ATTACH PARTITION documents_0 FOR VALUES IN (0);
ALTER TABLE entries ATTACH PARTITION entries_0 FOR VALUES IN (0);
ALTER TABLE postings ATTACH PARTITION postings_0 FOR VALUES IN (0);
ALTER TABLE counts ATTACH PARTITION counts_0 FOR VALUES IN (0);
ALTER TABLE names ATTACH PARTITION names_0 FOR VALUES IN (0);
ALTER TABLE facts ATTACH PARTITION facts_0 FOR VALUES IN (0);
ALTER TABLE symbols ATTACH PARTITION symbols_0 FOR VALUES IN (0);
ALTER TABLE waiting ATTACH PARTITION waiting_0 FOR VALUES IN (0);
