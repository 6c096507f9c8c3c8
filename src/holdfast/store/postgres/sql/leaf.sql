-- One leaf of every table, with its indexes; `{shard}` is its number. Runs where the leaf lies.
-- Every statement names the shard, so that an index answers alone only when it has that too. No two indexes may serve the
-- same lookup: a plan that is made once for all owners would choose by the size of a mean one.

CREATE TABLE units_{shard} (LIKE units);
CREATE UNIQUE INDEX ON units_{shard} (tenant, key);
CREATE UNIQUE INDEX ON units_{shard} (tenant, "user", id);
CREATE INDEX ON units_{shard} (tenant, "user", event_time, position);
CREATE INDEX ON units_{shard} (tenant, "user", session, event_time, position, key) WHERE session IS NOT NULL;
CREATE INDEX ON units_{shard} (tenant, "user", agent, key) WHERE document IS NULL AND kind = 'turn' AND session IS NULL;
CREATE INDEX ON units_{shard} (tenant, "user", session, agent, key) WHERE document IS NULL AND kind = 'turn';
CREATE INDEX ON units_{shard} (tenant, "user", access_count) WHERE access_count > 0;
CREATE INDEX ON units_{shard} (tenant, "user", covered_by) WHERE covered_by IS NOT NULL;
CREATE INDEX ON units_{shard} (tenant, "user", superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX ON units_{shard} (tenant, "user", document, id) WHERE document IS NOT NULL;
CREATE INDEX ON units_{shard} (tenant, "user") WHERE kind = 'summary';

CREATE TABLE versions_{shard} (LIKE versions);
CREATE UNIQUE INDEX ON versions_{shard} (tenant, unit_key, version);

CREATE TABLE vectors_{shard} (LIKE vectors);
ALTER TABLE vectors_{shard} ALTER COLUMN vector SET STORAGE PLAIN;  -- compared as it lies: nothing to unpack
CREATE UNIQUE INDEX ON vectors_{shard} (tenant, unit_key);
CREATE INDEX ON vectors_{shard} (tenant, "user", space);

CREATE TABLE version_vectors_{shard} (LIKE version_vectors);
CREATE UNIQUE INDEX ON version_vectors_{shard} (tenant, unit_key, version);

CREATE TABLE absences_{shard} (LIKE absences);
CREATE INDEX ON absences_{shard} (tenant, unit_key);

CREATE TABLE documents_{shard} (LIKE documents);
CREATE UNIQUE INDEX ON documents_{shard} (tenant, key);
CREATE UNIQUE INDEX ON documents_{shard} (tenant, "user", name);

CREATE TABLE entries_{shard} (LIKE entries);
ALTER TABLE entries_{shard} ALTER COLUMN topic SET STORAGE MAIN, ALTER COLUMN claim SET STORAGE MAIN;
CREATE UNIQUE INDEX ON entries_{shard} (tenant, unit_key);
CREATE INDEX ON entries_{shard} (tenant, "user", unit_key);
CREATE INDEX ON entries_{shard} (tenant, "user", stating) WHERE stating > 0;

CREATE TABLE postings_{shard} (LIKE postings);
CREATE INDEX ON postings_{shard} (tenant, "user", term, impact DESC)
    INCLUDE (unit_key, low, high, shard, field, role, tf, length);

CREATE TABLE counts_{shard} (LIKE counts) WITH (fillfactor = 70);  -- rows that change again and again stay on their page
CREATE UNIQUE INDEX ON counts_{shard} (tenant, "user", kind, name, agent);

CREATE TABLE names_{shard} (LIKE names);
CREATE INDEX ON names_{shard} (tenant, "user", name, kind) INCLUDE (unit_key, shard);
CREATE INDEX ON names_{shard} (tenant, unit_key);

CREATE TABLE facts_{shard} (LIKE facts);
CREATE INDEX ON facts_{shard} (tenant, "user", subject, object) INCLUDE (relation, confidence, unit_key, shard);
CREATE INDEX ON facts_{shard} (tenant, "user", object, subject) INCLUDE (relation, confidence, unit_key, shard);
CREATE INDEX ON facts_{shard} (tenant, unit_key);

CREATE TABLE symbols_{shard} (LIKE symbols);
CREATE INDEX ON symbols_{shard} (tenant, "user", token, symbol) INCLUDE (unit_key, tokens, shard);
CREATE INDEX ON symbols_{shard} (tenant, unit_key);

CREATE TABLE waiting_{shard} (LIKE waiting);
CREATE UNIQUE INDEX ON waiting_{shard} (tenant, unit_key);
