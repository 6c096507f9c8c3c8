-- Statements that write, and those that whole units are read by, by name. Each is about one tenant. `{row}`, `{version}`, `{ids}` and `{keys}` are filled; values never are.

-- name: row
key, body, checksum, superseded_by, access_count, covered_by, gate, superseded_why,
    tenant, "user", id, version, session, position, event_time;

-- name: version
unit_key, body, checksum, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, version, NULL, NULL, NULL;

-- name: ids
ANY (ARRAY(SELECT jsonb_array_elements_text(%(ids)s::jsonb)));

-- name: keys
ANY (ARRAY(SELECT jsonb_array_elements_text(%(keys)s::jsonb)::bigint));

-- name: counted
WITH entry AS (
    SELECT tenant, "user", agent, speaker, lengths, terms, unit_key FROM entries
), counted AS (
    SELECT tenant, "user", agent, 'u' AS kind, '' AS name, count(*) AS n FROM entry GROUP BY 1, 2, 3
    UNION ALL SELECT tenant, "user", agent, 's', speaker, count(*) FROM entry GROUP BY 1, 2, 3, 5
    UNION ALL SELECT tenant, "user", agent, 'f', (field - 1)::text, sum(size)::bigint FROM entry,
        unnest(lengths) WITH ORDINALITY AS one (size, field) WHERE size > 0 GROUP BY 1, 2, 3, 5
    UNION ALL SELECT tenant, "user", agent, 't', term, count(DISTINCT unit_key) FROM entry,
        unnest(terms) AS one (term) GROUP BY 1, 2, 3, 5
);

-- name: add_tenant
-- Goes with the statements that bind a transaction to a tenant, as one text.
INSERT INTO tenants (tenant) VALUES ({}) ON CONFLICT DO NOTHING;

-- name: tenant_room
SELECT most_units, (SELECT coalesce(sum(n), 0)::bigint FROM counts WHERE counts.tenant = tenants.tenant AND kind = 'u')
FROM tenants WHERE tenant = %(tenant)s AND most_units IS NOT NULL;

-- name: lock_quota
SELECT pg_advisory_xact_lock(%(number)s::bigint);

-- name: agreed
SELECT value FROM agreements WHERE name = %(name)s;

-- name: agree
INSERT INTO agreements (name, value) VALUES (%(name)s, %(value)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: agree_first
INSERT INTO agreements (name, value) VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO NOTHING;

-- name: disagree
DELETE FROM agreements WHERE name = %(name)s;

-- name: name_space
INSERT INTO spaces (name) VALUES (%(space)s) ON CONFLICT (name) DO NOTHING;

-- name: next_keys
SELECT nextval('unit_keys') FROM generate_series(1, %(count)s);

-- ------------------------------------------------------------------------------------------------------- units

-- name: owner_mark
SELECT
    (SELECT coalesce(sum(hashtextextended(concat_ws('|', key, checksum, superseded_by, covered_by, gate), 0)), 0)
        FROM units WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '')),
    (SELECT coalesce(sum(hashtextextended(concat_ws('|', unit_key, checksum, space), 0)), 0)
        FROM vectors WHERE tenant = %(tenant)s AND "user" IN (%(user)s, ''));

-- name: find_unit
SELECT {row}
FROM units WHERE tenant = %(tenant)s AND "user" = %(user)s AND id = %(id)s;

-- name: find_units
SELECT {row}
FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND id = {ids}
ORDER BY "user";

-- name: units_by_key
SELECT {row}
FROM units WHERE tenant = %(tenant)s AND key = {keys};

-- name: taken_ids
SELECT id FROM units WHERE tenant = %(tenant)s AND "user" = %(user)s AND id = {ids};

-- name: stored_states
SELECT id, checksum, superseded_by, covered_by, gate, access_count FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND id = {ids};

-- name: next_units
SELECT key, "user" FROM units WHERE tenant = %(tenant)s AND key > %(after)s
ORDER BY key LIMIT %(limit)s;

-- name: insert_unit
INSERT INTO units (tenant, key, "user", id, version, session, position, event_time, body, checksum, document,
    agent, kind, scope, recorded_time, expires_at, valid_from, valid_to, metadata, access_count)
VALUES (%(tenant)s, %(key)s, %(user)s, %(id)s, %(version)s, %(session)s, %(position)s, %(event_time)s,
    %(body)s, %(checksum)s, %(document)s, %(agent)s, %(kind)s, %(scope)s, %(recorded_time)s, %(expires_at)s,
    %(valid_from)s, %(valid_to)s, %(metadata)s::jsonb, 0);

-- name: replace_unit
UPDATE units SET version = %(version)s, session = %(session)s, position = %(position)s, event_time = %(event_time)s,
    body = %(body)s, checksum = %(checksum)s, agent = %(agent)s, kind = %(kind)s, scope = %(scope)s,
    recorded_time = %(recorded_time)s, expires_at = %(expires_at)s, valid_from = %(valid_from)s, valid_to = %(valid_to)s,
    metadata = %(metadata)s::jsonb
WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: rewrite_unit
UPDATE units SET body = %(body)s::text, checksum = %(checksum)s, scope = %(body)s::text::json ->> 'scope'
WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: archive_version
INSERT INTO versions (tenant, unit_key, version, body, checksum)
SELECT tenant, key, version, body, checksum FROM units
WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: unarchive_vector
DELETE FROM version_vectors WHERE tenant = %(tenant)s AND unit_key = %(key)s AND version = (
    SELECT version FROM units WHERE tenant = %(tenant)s AND key = %(key)s);

-- name: archive_vector
INSERT INTO version_vectors (tenant, unit_key, version, space, vector, checksum)
SELECT v.tenant, v.unit_key, v.version, v.space, v.vector, v.checksum
FROM vectors AS v JOIN units AS u ON u.tenant = v.tenant AND u.key = v.unit_key
WHERE v.tenant = %(tenant)s AND v.unit_key = %(key)s AND u.tenant = %(tenant)s AND u.version = v.version;

-- name: supersede_unit
UPDATE units SET superseded_by = %(by)s, superseded_why = %(why)s,
    superseded_at = CASE WHEN %(by)s::text IS NOT NULL THEN coalesce(superseded_at, %(at)s) END
WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: next_position
SELECT coalesce(max(position) + 1, 0) FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND session = %(session)s;

-- name: last_turns
SELECT {row}
FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND session IS NOT DISTINCT FROM %(session)s
    AND agent = %(agent)s AND document IS NULL AND kind = 'turn'
ORDER BY key DESC LIMIT %(limit)s;

-- name: document_of_unit
SELECT document FROM units WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: count_access
UPDATE units SET access_count = access_count + 1
WHERE tenant = %(tenant)s AND "user" = %(user)s AND id = {ids}
    AND (%(agent)s::text IS NULL OR agent IN ('', %(agent)s));

-- name: put_gate
UPDATE units SET gate = %(gate)s
WHERE tenant = %(tenant)s AND "user" = %(user)s AND id = %(id)s AND version = %(version)s
RETURNING key, body, checksum;

-- name: cover_unit
UPDATE units SET covered_by = %(by)s, covered_at = %(at)s
WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: uncover_units
UPDATE units SET covered_by = NULL, covered_at = NULL
WHERE tenant = %(tenant)s AND "user" = %(user)s AND covered_by = {ids} RETURNING key, id;

-- name: superseded_by
SELECT superseded_by FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND id = %(id)s;

-- name: owner_summaries
SELECT {row}
FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND kind = 'summary' ORDER BY key;

-- ---------------------------------------------------------------------------------------------------- versions

-- name: first_version
SELECT {version} FROM versions
WHERE tenant = %(tenant)s AND unit_key = %(key)s AND version = 1;

-- name: unit_versions
SELECT {version} FROM versions WHERE tenant = %(tenant)s AND unit_key = %(key)s ORDER BY version;

-- name: versions_of_keys
SELECT {version} FROM versions
WHERE tenant = %(tenant)s AND unit_key = {keys} ORDER BY unit_key, version;

-- name: rewritten_since
SELECT key, version FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND version > 1
    AND recorded_time > %(as_of)s;

-- name: versions_by
SELECT {version} FROM versions
WHERE tenant = %(tenant)s AND unit_key = {keys}
    AND (body::json ->> 'recorded_time') COLLATE "C" <= %(as_of)s
ORDER BY unit_key, version;

-- name: lifetimes
SELECT CASE WHEN superseded_at <= %(as_of)s THEN superseded_by END,
    CASE WHEN covered_at <= %(as_of)s THEN covered_by END,
    (SELECT by FROM absences WHERE absences.tenant = %(tenant)s AND unit_key = %(key)s
        AND since <= %(as_of)s AND until > %(as_of)s LIMIT 1)
FROM units WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: rewrite_version
UPDATE versions SET body = %(body)s, checksum = %(checksum)s
WHERE tenant = %(tenant)s AND unit_key = %(key)s AND version = %(version)s;

-- name: insert_version
INSERT INTO versions (tenant, unit_key, version, body, checksum)
VALUES (%(tenant)s, %(key)s, %(version)s, %(body)s, %(checksum)s);

-- name: record_absence
INSERT INTO absences (tenant, unit_key, by, since, until)
SELECT tenant, key, superseded_by, superseded_at, %(until)s FROM units
WHERE tenant = %(tenant)s AND key = %(key)s AND superseded_by IS NOT NULL
    AND superseded_at IS NOT NULL;

-- name: insert_absence
INSERT INTO absences (tenant, unit_key, by, since, until)
VALUES (%(tenant)s, %(key)s, %(by)s, %(since)s, %(until)s);

-- name: forget_absences
UPDATE absences SET by = %(erased)s
WHERE tenant = %(tenant)s AND by = {ids} AND unit_key IN (
    SELECT key FROM units WHERE units.tenant = %(tenant)s AND "user" = %(user)s);

-- ----------------------------------------------------------------------------------------------------- vectors

-- name: put_vector
WITH one AS (
    SELECT key, "user", version FROM units
    WHERE tenant = %(tenant)s AND "user" = %(user)s AND id = %(id)s AND version = %(version)s
), gone AS (
    DELETE FROM vectors WHERE tenant = %(tenant)s AND unit_key = (SELECT key FROM one) RETURNING 1
)
INSERT INTO vectors (tenant, unit_key, "user", space, version, vector, checksum)
SELECT %(tenant)s, key, "user", (SELECT key FROM spaces WHERE name = %(space)s), version, %(vector)s,
    %(checksum)s
FROM one WHERE (SELECT count(*) FROM gone) >= 0  -- after the old one is gone
RETURNING unit_key;

-- name: fitting_units
SELECT key, u."user", u.id, u.version
FROM unnest(%(users)s::text[], %(ids)s::text[], %(versions)s::integer[]) AS given ("user", id, version)
JOIN units AS u ON u.tenant = %(tenant)s AND u."user" = given."user" AND u.id = given.id
    AND u.version = given.version;

-- name: insert_vector
INSERT INTO vectors (tenant, unit_key, "user", space, version, vector, checksum)
VALUES (%(tenant)s, %(key)s, %(user)s, (SELECT key FROM spaces WHERE name = %(space)s), %(version)s, %(vector)s,
    %(checksum)s);

-- name: insert_version_vector
INSERT INTO version_vectors (tenant, unit_key, version, space, vector, checksum)
VALUES (%(tenant)s, %(key)s, %(version)s, (SELECT key FROM spaces WHERE name = %(space)s), %(vector)s,
    %(checksum)s);

-- name: vectors_of_units
SELECT unit_key, vector, checksum FROM vectors
WHERE tenant = %(tenant)s AND space = (SELECT key FROM spaces WHERE name = %(space)s)
    AND unit_key = {keys};

-- name: vectors_of_versions
SELECT unit_key, vector, checksum, version FROM version_vectors
WHERE tenant = %(tenant)s AND space = (SELECT key FROM spaces WHERE name = %(space)s)
    AND unit_key = {keys} ORDER BY unit_key, version;

-- name: vectors_of_keys
SELECT vector FROM vectors WHERE tenant = %(tenant)s AND unit_key = {keys}
UNION ALL
SELECT vector FROM version_vectors WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: no_longer_waiting
-- What somebody else embeds at this moment is left to them.
DELETE FROM waiting WHERE tenant = %(tenant)s AND unit_key = ANY (ARRAY(
    SELECT unit_key FROM waiting WHERE tenant = %(tenant)s AND unit_key = {keys}
    FOR UPDATE SKIP LOCKED));

-- name: waiting_of_keys
SELECT {row}
FROM units AS u
WHERE u.tenant = %(tenant)s AND u.key = {keys} AND NOT EXISTS (
    SELECT 1 FROM vectors AS v WHERE v.tenant = %(tenant)s AND v.unit_key = u.key
        AND v.version = u.version AND v.space = (SELECT s.key FROM spaces AS s WHERE s.name = %(space)s))
ORDER BY u.key;

-- name: drop_waiting
DELETE FROM waiting AS w WHERE w.tenant = %(tenant)s AND w.unit_key = ANY (ARRAY(
    SELECT unit_key FROM waiting WHERE tenant = %(tenant)s AND unit_key = {keys}
    FOR UPDATE SKIP LOCKED)) AND NOT EXISTS (
    SELECT 1 FROM units AS u WHERE u.tenant = %(tenant)s AND u.key = w.unit_key AND NOT EXISTS (
        SELECT 1 FROM vectors AS v WHERE v.tenant = %(tenant)s AND v.unit_key = u.key
            AND v.version = u.version AND v.space = (SELECT s.key FROM spaces AS s JOIN agreements AS a ON a.value = s.name
                WHERE a.name = 'space')));

-- ---------------------------------------------------------------------------------------------------- documents

-- name: erase_document
DELETE FROM documents
WHERE tenant = %(tenant)s AND "user" = %(user)s AND name = %(name)s RETURNING key;

-- name: put_document
WITH known AS (
    UPDATE documents SET path = %(path)s, core = %(core)s, body = %(body)s, checksum = %(checksum)s,
        given_to = %(given_to)s
    WHERE tenant = %(tenant)s AND "user" = %(user)s AND name = %(name)s RETURNING 1
)
INSERT INTO documents (tenant, key, "user", name, path, core, body, checksum, given_to)
SELECT %(tenant)s, nextval('document_keys'), %(user)s, %(name)s, %(path)s, %(core)s, %(body)s, %(checksum)s,
    %(given_to)s
WHERE NOT EXISTS (SELECT 1 FROM known);

-- ----------------------------------------------------------------------------------------------------- erasing

-- name: store_units
-- All units of a tenant are erased as some of them are: others are in the same tables.
SELECT -1;

-- name: erase_units
DELETE FROM units WHERE tenant = %(tenant)s AND key = {keys};

-- name: erase_versions
DELETE FROM versions WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: erase_vectors
DELETE FROM vectors WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: erase_version_vectors
DELETE FROM version_vectors WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: erase_absences
DELETE FROM absences WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: mentioning_units
SELECT {row}
FROM units
WHERE tenant = %(tenant)s AND ("user" = %(user)s OR %(user)s = '')
    AND (strpos(body, '"supersedes"') > 0 OR strpos(body, '"links"') > 0) AND EXISTS (
        SELECT 1 FROM json_array_elements_text(coalesce(body::json -> 'supersedes', '[]')) AS named WHERE named = {ids}
        UNION ALL
        SELECT 1 FROM json_array_elements_text(coalesce(body::json -> 'links', '[]')) AS named WHERE named = {ids});

-- name: mentioning_versions
SELECT unit_key, v.version, v.body FROM versions AS v JOIN units AS u ON u.key = unit_key
WHERE v.tenant = %(tenant)s AND u.tenant = %(tenant)s
    AND ("user" = %(user)s OR %(user)s = '') AND EXISTS (
        SELECT 1 FROM json_array_elements_text(coalesce(v.body::json -> 'supersedes', '[]')) AS named WHERE named = {ids}
        UNION ALL
        SELECT 1 FROM json_array_elements_text(coalesce(v.body::json -> 'links', '[]')) AS named WHERE named = {ids});

-- name: forget_superseders
UPDATE units SET superseded_by = %(erased)s, superseded_why = NULL
WHERE tenant = %(tenant)s AND "user" = %(user)s AND superseded_by = {ids}
RETURNING key;

-- name: owned_units
SELECT {row}
FROM units WHERE tenant = %(tenant)s AND "user" = %(user)s
ORDER BY event_time, position, id;

-- name: record_backup
INSERT INTO backups (host, path, made_at, identity) VALUES (%(host)s, %(path)s, %(at)s, %(identity)s)
ON CONFLICT (host, path) DO UPDATE SET made_at = excluded.made_at, identity = excluded.identity;

-- name: forget_backup
DELETE FROM backups WHERE host = %(host)s AND path = %(path)s;

-- name: backups
SELECT host, path FROM backups LIMIT 1;

-- name: keep_backups
LOCK TABLE backups IN SHARE MODE;

-- name: recorded_copies
SELECT host, path, identity FROM backups ORDER BY host, path;

-- name: note_copies
INSERT INTO copies (host, path, kind, tenant, "user", id)
SELECT host, path, kind, %(tenant)s, "user", id
FROM backups, unnest(%(kinds)s::text[], %(users)s::text[], %(ids)s::text[]) AS given (kind, "user", id);

-- name: noted_copies
SELECT DISTINCT host, path, identity FROM copies JOIN backups USING (host, path) ORDER BY host, path;

-- name: notes_of_copy
SELECT kind, tenant, "user", id FROM copies WHERE host = %(host)s AND path = %(path)s ORDER BY kind, tenant, "user", id;

-- name: forget_notes
DELETE FROM copies WHERE host = %(host)s AND path = %(path)s;

-- name: forget_noted
DELETE FROM copies WHERE host = %(host)s AND path = %(path)s AND (kind, tenant, "user", id) IN
    (SELECT * FROM unnest(%(kinds)s::text[], %(tenants)s::text[], %(users)s::text[], %(ids)s::text[]));

-- ------------------------------------------------------------------------------------------- whole units, and back

-- name: kept_keys
SELECT key FROM units
WHERE tenant = %(tenant)s AND (%(whole)s = 1 OR "user" = %(user)s)
    AND (%(session)s::text IS NULL OR session = %(session)s)
ORDER BY key;

-- name: kept_units
SELECT {row}, superseded_at, covered_at, document
FROM units WHERE tenant = %(tenant)s AND key = {keys} ORDER BY key;

-- name: kept_absences
SELECT unit_key, by, since, until FROM absences
WHERE tenant = %(tenant)s AND unit_key = {keys} ORDER BY unit_key, since, until;

-- name: kept_vectors
SELECT unit_key, vector, checksum, version, name FROM vectors JOIN spaces ON spaces.key = space
WHERE tenant = %(tenant)s AND unit_key = {keys}
UNION ALL
SELECT unit_key, vector, checksum, version, name FROM version_vectors JOIN spaces ON spaces.key = space
WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: kept_document_keys
SELECT key FROM documents
WHERE tenant = %(tenant)s AND (%(whole)s = 1 OR "user" = %(user)s) ORDER BY key;

-- name: kept_document
SELECT "user", name, core, body, checksum FROM documents
WHERE tenant = %(tenant)s AND key = %(key)s;

-- name: write_fate
UPDATE units SET superseded_by = %(superseded_by)s, superseded_at = %(superseded_at)s,
    superseded_why = %(superseded_why)s, covered_by = %(covered_by)s, covered_at = %(covered_at)s, gate = %(gate)s,
    access_count = %(access_count)s
WHERE tenant = %(tenant)s AND key = %(key)s;

-- ------------------------------------------------------------------------------------------------------ derived

-- name: derived_state
SELECT u.key, u.checksum, e.content FROM units AS u
LEFT JOIN entries AS e ON e.tenant = %(tenant)s AND e.unit_key = u.key
WHERE u.tenant = %(tenant)s AND u.key = {keys};

-- name: derived_entries
SELECT unit_key, "user", agent, speaker, lengths, terms, impacts FROM entries
WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: promote_entry
UPDATE entries SET content = %(after)s
WHERE tenant = %(tenant)s AND unit_key = %(key)s AND content = %(before)s;

-- name: forget_derivation
UPDATE entries SET content = -1 WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: insert_entry
INSERT INTO entries (tenant, unit_key, "user", content, author, speaker, role, agent, event_us, starts_us, ends_us,
    decay_rate, length, said, stating, anchor_density, lengths, terms, fields, tfs, impacts, topic, claim, acts)
VALUES (%(tenant)s, %(key)s, %(user)s, %(content)s, %(author)s, %(speaker)s, %(role)s, %(agent)s,
    %(event_us)s, %(starts_us)s, %(ends_us)s, %(decay_rate)s, %(length)s, %(said)s, %(stating)s, %(anchor_density)s,
    %(lengths)s, %(terms)s, %(fields)s, %(tfs)s, %(impacts)s, %(topic)s::bit(4096), %(claim)s::bit(4096), %(acts)s);

-- name: insert_postings
INSERT INTO postings (tenant, "user", term, impact, unit_key, field, tf, length, role, low, high)
SELECT %(tenant)s, * FROM unnest(%(users)s::text[], %(terms)s::text[], %(impacts)s::real[], %(keys)s::bigint[],
    %(fields)s::smallint[], %(tfs)s::integer[], %(lengths)s::integer[], %(roles)s::smallint[], %(lows)s::bigint[],
    %(highs)s::bigint[]);

-- name: insert_names
INSERT INTO names (tenant, "user", name, kind, unit_key)
SELECT %(tenant)s, * FROM unnest(%(users)s::text[], %(names)s::text[], %(kinds)s::"char"[], %(keys)s::bigint[]);

-- name: insert_facts
INSERT INTO facts (tenant, "user", unit_key, subject, relation, object, confidence)
SELECT %(tenant)s, * FROM unnest(%(users)s::text[], %(keys)s::bigint[], %(subjects)s::text[],
    %(relations)s::text[], %(objects)s::text[], %(confidences)s::double precision[]);

-- name: insert_symbols
INSERT INTO symbols (tenant, "user", token, symbol, unit_key, tokens)
SELECT %(tenant)s, * FROM unnest(%(users)s::text[], %(tokens)s::text[], %(symbols)s::text[], %(keys)s::bigint[],
    %(sizes)s::smallint[]);

-- name: insert_waiting
INSERT INTO waiting (tenant, unit_key)
SELECT %(tenant)s, key FROM units AS u
WHERE u.tenant = %(tenant)s AND u.key = {keys}
    AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.tenant = %(tenant)s AND v.unit_key = u.key
        AND v.version = u.version AND v.space = (SELECT s.key FROM spaces AS s JOIN agreements AS a ON a.value = s.name
            WHERE a.name = 'space'))
    AND NOT EXISTS (SELECT 1 FROM waiting AS w WHERE w.tenant = %(tenant)s AND w.unit_key = u.key);

-- name: erase_postings
DELETE FROM postings AS p
USING unnest(%(users)s::text[], %(terms)s::text[], %(impacts)s::real[], %(given)s::bigint[]) AS gone ("user", term, impact, key)
WHERE p.tenant = %(tenant)s AND p."user" = gone."user" AND p.term = gone.term
    AND p.impact = gone.impact AND p.unit_key = gone.key;

-- name: erase_entries
DELETE FROM entries WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: erase_names
DELETE FROM names WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: erase_facts
DELETE FROM facts WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: erase_symbols
DELETE FROM symbols WHERE tenant = %(tenant)s AND unit_key = {keys};

-- name: add_counts
UPDATE counts AS c SET n = c.n + d.n
FROM unnest(%(users)s::text[], %(agents)s::text[], %(kinds)s::"char"[], %(names)s::text[], %(ns)s::bigint[])
    AS d ("user", agent, kind, name, n)
WHERE c.tenant = %(tenant)s AND c."user" = d."user" AND c.kind = d.kind AND c.name = d.name
    AND c.agent = d.agent;

-- name: first_counts
INSERT INTO counts (tenant, "user", agent, kind, name, n)
SELECT %(tenant)s, d.* FROM unnest(%(users)s::text[], %(agents)s::text[], %(kinds)s::"char"[],
    %(names)s::text[], %(ns)s::bigint[]) AS d ("user", agent, kind, name, n)
WHERE NOT EXISTS (SELECT 1 FROM counts AS c WHERE c.tenant = %(tenant)s AND c."user" = d."user"
    AND c.kind = d.kind AND c.name = d.name AND c.agent = d.agent);

-- name: drop_counts
DELETE FROM counts AS c
USING unnest(%(users)s::text[], %(agents)s::text[], %(kinds)s::"char"[], %(names)s::text[]) AS d ("user", agent, kind, name)
WHERE c.tenant = %(tenant)s AND c."user" = d."user" AND c.kind = d.kind AND c.name = d.name
    AND c.agent = d.agent AND c.n = 0;

-- name: owner_stats
SELECT count(*), count(DISTINCT session), min(event_time), max(event_time), coalesce(sum(version), 0)::bigint FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '');

-- name: owner_kinds
SELECT kind, count(*) FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') GROUP BY 1 ORDER BY 1;

-- name: owner_scopes
SELECT scope, count(*) FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') GROUP BY 1 ORDER BY 1;

-- ------------------------------------------------------------------------------- the whole store, as who opened it

-- name: is_spread
-- Of a schema that could be: a tenant, or bytes that it left, on another server; or this is that server.
SELECT EXISTS (SELECT 1 FROM tenants JOIN shards USING (shard) WHERE server IS NOT NULL)
    OR EXISTS (SELECT 1 FROM moves)
    OR EXISTS (SELECT 1 FROM agreements WHERE name = 'shard' OR name ~ '^erasing [1-9]');

-- name: tenants
SELECT tenant FROM tenants WHERE tenant != '' ORDER BY tenant;

-- name: all_wait_for
INSERT INTO waiting (tenant, unit_key)
SELECT u.tenant, u.key FROM units AS u
WHERE NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.tenant = u.tenant AND v.unit_key = u.key
        AND v.version = u.version AND v.space = (SELECT key FROM spaces WHERE name = %(space)s))
    AND NOT EXISTS (SELECT 1 FROM waiting AS w WHERE w.tenant = u.tenant AND w.unit_key = u.key);

-- name: waiting_units
SELECT {row}
FROM units AS u
WHERE u.key > %(after)s AND NOT EXISTS (
    SELECT 1 FROM vectors AS v WHERE v.tenant = u.tenant AND v.unit_key = u.key
        AND v.version = u.version AND v.space = (SELECT key FROM spaces WHERE name = %(space)s))
ORDER BY u.key LIMIT %(limit)s;

-- name: listed_units
-- The same of the space that is searched: whatever has no vector of it is listed.
SELECT {row}
FROM units AS u
WHERE u.key > %(after)s AND EXISTS (
        SELECT 1 FROM waiting AS w WHERE w.tenant = u.tenant AND w.unit_key = u.key)
    AND NOT EXISTS (
        SELECT 1 FROM vectors AS v WHERE v.tenant = u.tenant AND v.unit_key = u.key
            AND v.version = u.version AND v.space = (SELECT key FROM spaces WHERE name = %(space)s))
ORDER BY u.key LIMIT %(limit)s;

-- name: whole_store
SELECT (SELECT count(*) FROM units),
    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
    WHERE nspname = 'holdfast' AND relkind = 'r' AND relname = ANY (%(tables)s::text[])),
    (SELECT count(*) FROM waiting AS w JOIN units AS u ON u.tenant = w.tenant AND u.key = w.unit_key
    WHERE NOT EXISTS (
        SELECT 1 FROM vectors AS v WHERE v.tenant = u.tenant AND v.unit_key = u.key
            AND v.version = u.version AND v.space = (SELECT key FROM spaces WHERE name = %(space)s)));

-- name: space_key
SELECT a.value, s.key FROM agreements AS a JOIN spaces AS s ON s.name = a.value WHERE a.name = 'space';

-- name: largest_owner
SELECT max(n) FROM (SELECT sum(n) AS n FROM counts WHERE kind = 'u' GROUP BY tenant, "user") AS owners;

-- name: fill_counts
{counted}
INSERT INTO counts (tenant, "user", agent, kind, name, n)
SELECT tenant, "user", agent, kind::"char", name, n FROM counted;

-- name: loaded_room
SELECT most_units - (SELECT count(*) FROM units AS u WHERE u.tenant = t.tenant)
FROM tenants AS t WHERE tenant = %(tenant)s AND most_units IS NOT NULL;

-- name: set_quota
UPDATE tenants SET most_units = %(most)s WHERE tenant = %(tenant)s;

-- name: indexes
SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'holdfast' AND tablename = ANY (%(tables)s::text[])
ORDER BY indexname;

-- name: all_bodies
SELECT {row}
FROM units ORDER BY key;

-- name: all_versions
SELECT {version} FROM versions ORDER BY unit_key, version;

-- name: space_vectors
SELECT vector, checksum, tenant, unit_key, version FROM vectors
WHERE space = (SELECT key FROM spaces WHERE name = %(space)s);

-- name: space_version_vectors
SELECT vector, checksum, tenant, unit_key, version FROM version_vectors
WHERE space = (SELECT key FROM spaces WHERE name = %(space)s);

-- name: drop_vectors
DELETE FROM vectors WHERE (tenant, unit_key, version) IN
    (SELECT * FROM unnest(%(tenants)s::text[], %(keys)s::bigint[], %(versions)s::integer[]));

-- name: drop_version_vectors
DELETE FROM version_vectors WHERE (tenant, unit_key, version) IN
    (SELECT * FROM unnest(%(tenants)s::text[], %(keys)s::bigint[], %(versions)s::integer[]));

-- name: all_vectors
SELECT unit_key, vector, checksum, space FROM vectors
UNION ALL SELECT unit_key, vector, checksum, space FROM version_vectors ORDER BY unit_key;

-- name: odd_fates
SELECT key FROM units AS u
WHERE (superseded_by IS NULL) != (superseded_at IS NULL) OR (covered_by IS NULL) != (covered_at IS NULL)
    OR superseded_by != %(erased)s AND NOT EXISTS (SELECT 1 FROM units AS newer WHERE newer.tenant = u.tenant
        AND newer."user" = u."user" AND newer.id = u.superseded_by)
    OR covered_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM units AS summary WHERE summary.tenant = u.tenant
        AND summary.id = u.covered_by AND summary.kind = 'summary' AND summary.body::jsonb #> '{lineage,sources}' ? u.id)
ORDER BY key;

-- name: stale_entries
SELECT coalesce(u.key, e.unit_key) FROM (SELECT tenant, key, checksum FROM units) AS u
FULL JOIN (SELECT tenant, unit_key, content FROM entries) AS e
    ON e.tenant = u.tenant AND e.unit_key = u.key
WHERE u.checksum IS DISTINCT FROM e.content ORDER BY 1;

-- name: wrong_counts
{counted}
SELECT coalesce(c.tenant, k.tenant), coalesce(c."user", k."user"), count(*) FROM counted AS k
FULL JOIN (SELECT tenant, "user", agent, kind, name, n FROM counts) AS c
    ON c.tenant = k.tenant AND c."user" = k."user" AND c.agent = k.agent AND c.kind = k.kind::"char" AND c.name = k.name
WHERE c.n IS DISTINCT FROM k.n GROUP BY 1, 2 ORDER BY 1, 2;

-- name: wrong_postings
SELECT coalesce(e.unit_key, p.unit_key)
FROM (SELECT unit_key, tenant, cardinality(terms) AS n FROM entries WHERE cardinality(terms) > 0) AS e
FULL JOIN (SELECT unit_key, tenant, count(*) AS n, min(low) <> max(low) OR min(high) <> max(high) AS differ FROM postings
    GROUP BY 1, 2) AS p
    ON p.tenant = e.tenant AND p.unit_key = e.unit_key
WHERE e.n IS DISTINCT FROM p.n OR p.differ ORDER BY 1;

-- name: tables
SELECT format('%%I.%%I', nspname, relname), pg_total_relation_size(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
WHERE nspname = 'holdfast' AND relkind = 'r' AND relname = ANY (%(tables)s::text[])
ORDER BY 1;

-- name: older_readers
SELECT count(*) FROM (
    SELECT backend_xmin AS oldest FROM pg_stat_activity WHERE pid != pg_backend_pid() AND datname = current_database()
    UNION ALL SELECT backend_xmin FROM pg_stat_replication
    UNION ALL SELECT xmin FROM pg_replication_slots
    UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
) AS seen WHERE oldest IS NOT NULL AND age(oldest) > age(%(now)s::text::xid);

-- name: staleness
-- Nothing, while all that has come over a connection that lasts is read already; else since when nothing was.
SELECT CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver)
    THEN 0.0 ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END::float8
WHERE pg_is_in_recovery();

-- name: all_units
SELECT count(*) FROM units;
