-- Every statement the SQLite store runs, by name. `{where}` is filled with a compiled view, `{row}` and `{version}` with
-- the columns of a row; values never are.

-- name: row
key, body, checksum, superseded_by, access_count, covered_by, gate, superseded_why,
    tenant, user, id, version, session, position, event_time;

-- name: version
unit_key, body, checksum, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, version, NULL, NULL, NULL;

-- name: find_unit
SELECT {row}
FROM units WHERE tenant = :tenant AND user = :user AND id = :id;

-- name: find_units
SELECT {row}
FROM units
WHERE tenant = :tenant AND user IN (:user, '') AND id IN (SELECT value FROM json_each(:ids))
ORDER BY user;

-- name: taken_ids
SELECT id FROM units WHERE tenant = :tenant AND user = :user AND id IN (SELECT value FROM json_each(:ids));

-- name: insert_unit
INSERT INTO units (tenant, user, id, version, session, position, event_time, body, checksum, document)
VALUES (:tenant, :user, :id, :version, :session, :position, :event_time, :body, :checksum, :document);

-- name: archive_version
INSERT INTO versions (unit_key, version, body, checksum) SELECT key, version, body, checksum FROM units WHERE key = :key;

-- name: archive_vector
INSERT OR REPLACE INTO version_vectors (unit_key, version, space, vector, checksum)
SELECT unit_key, vectors.version, space, vector, vectors.checksum
FROM vectors JOIN units ON key = unit_key AND units.version = vectors.version WHERE unit_key = :key;

-- name: replace_unit
UPDATE units SET version = :version, session = :session, position = :position, event_time = :event_time,
    body = :body, checksum = :checksum WHERE key = :key;

-- name: supersede_unit
UPDATE units SET superseded_by = :by, superseded_why = :why,
    superseded_at = CASE WHEN :by IS NOT NULL THEN coalesce(superseded_at, :at) END WHERE key = :key;

-- name: next_position
SELECT coalesce(max(position) + 1, 0) FROM units WHERE tenant = :tenant AND user = :user AND session = :session;

-- name: last_turns
SELECT {row}
FROM units
WHERE tenant = :tenant AND user = :user AND session IS :session AND coalesce(json_extract(body, '$.agent'), '') = :agent
    AND document IS NULL AND json_extract(body, '$.kind') IS NULL
ORDER BY key DESC LIMIT :limit;

-- name: first_version
SELECT {version} FROM versions WHERE unit_key = :key AND version = 1;

-- name: record_change
INSERT INTO changes (tenant, user, unit_key) VALUES (:tenant, :user, :key);

-- name: changes_since
SELECT seq, tenant, user, unit_key FROM changes WHERE seq > :seq ORDER BY seq;

-- name: owner_changes_since
SELECT seq, unit_key FROM changes WHERE seq > :seq AND tenant = :tenant AND user = :user ORDER BY seq;

-- name: change_mark
SELECT mark FROM changes WHERE seq = :seq;

-- name: data_version
PRAGMA data_version;

-- name: last_change
SELECT coalesce(max(seq), 0) FROM changes;

-- name: last_change_of_owner
SELECT seq, mark FROM changes WHERE tenant = :tenant AND user IN (:user, :everyone) ORDER BY seq DESC LIMIT 1;

-- name: owner_units
SELECT {row}, iif(content = checksum AND derivation = :derivation, analysis, NULL), analysis_crc
FROM units LEFT JOIN analyses ON unit_key = key WHERE tenant = :tenant AND user = :user ORDER BY key;

-- name: analysed_units
SELECT {row}, iif(content = checksum AND derivation = :derivation, analysis, NULL), analysis_crc
FROM units LEFT JOIN analyses ON unit_key = key WHERE key IN (SELECT value FROM json_each(:keys)) ORDER BY key;

-- name: put_analysis
INSERT INTO analyses (unit_key, content, derivation, analysis, analysis_crc)
SELECT key, :content, :derivation, :analysis, :crc FROM units WHERE key = :key AND checksum = :content
ON CONFLICT (unit_key) DO UPDATE SET content = excluded.content, derivation = excluded.derivation,
    analysis = excluded.analysis, analysis_crc = excluded.analysis_crc;

-- name: keep_analysis
UPDATE analyses SET content = :content WHERE unit_key = :key AND content = :before;

-- name: all_units
SELECT {row}
FROM units ORDER BY key;

-- name: all_versions
SELECT {version} FROM versions ORDER BY unit_key, version;

-- name: rewritten_since
SELECT key, version FROM units WHERE tenant = :tenant AND user IN (:user, '') AND version > 1
    AND json_extract(body, '$.recorded_time') > :as_of;

-- name: versions_by
SELECT {version} FROM versions
WHERE unit_key IN (SELECT value FROM json_each(:keys)) AND json_extract(body, '$.recorded_time') <= :as_of
ORDER BY unit_key, version;

-- name: lifetimes
SELECT CASE WHEN superseded_at <= :as_of THEN superseded_by END, CASE WHEN covered_at <= :as_of THEN covered_by END,
    (SELECT by FROM absences WHERE unit_key = units.key AND since <= :as_of AND until > :as_of LIMIT 1)
FROM units WHERE key = :key;

-- name: record_absence
INSERT INTO absences (unit_key, by, since, until)
SELECT key, superseded_by, superseded_at, :until FROM units WHERE key = :key AND superseded_by IS NOT NULL
    AND superseded_at IS NOT NULL;

-- name: empty_absences
DELETE FROM absences;

-- name: erase_absences
DELETE FROM absences WHERE unit_key IN (SELECT value FROM json_each(:keys));

-- name: forget_absences
UPDATE absences SET by = :erased WHERE by IN (SELECT value FROM json_each(:ids))
    AND EXISTS (SELECT 1 FROM units WHERE key = unit_key AND tenant = :tenant AND user = :user);

-- name: unit_versions
SELECT {version} FROM versions WHERE unit_key = :key ORDER BY version;

-- name: versions_of_keys
SELECT {version} FROM versions WHERE unit_key IN (SELECT value FROM json_each(:keys)) ORDER BY unit_key, version;

-- name: scan_oldest
SELECT {row}
FROM units WHERE {where}
ORDER BY event_time, position, id LIMIT :limit;

-- name: scan_newest
SELECT {row}
FROM units WHERE {where}
ORDER BY event_time DESC, position DESC, id DESC LIMIT :limit;

-- name: matching_keys
SELECT key FROM units WHERE {where};

-- name: owner_stats
SELECT count(*), count(DISTINCT session), min(event_time), max(event_time), coalesce(sum(version), 0) FROM units
WHERE tenant = :tenant AND user IN (:user, '');

-- name: owner_kinds
SELECT coalesce(json_extract(body, '$.kind'), 'turn'), count(*) FROM units
WHERE tenant = :tenant AND user IN (:user, '') GROUP BY 1 ORDER BY 1;

-- name: owner_scopes
SELECT json_extract(body, '$.scope'), count(*) FROM units
WHERE tenant = :tenant AND user IN (:user, '') GROUP BY 1 ORDER BY 1;

-- name: store_units
SELECT count(*) FROM units;

-- name: store_bytes
SELECT page_count * page_size FROM pragma_page_count, pragma_page_size;

-- name: odd_fates
SELECT key FROM units
WHERE (superseded_by IS NULL) != (superseded_at IS NULL) OR (covered_by IS NULL) != (covered_at IS NULL)
    OR superseded_by != :erased AND NOT EXISTS (SELECT 1 FROM units AS newer
        WHERE newer.tenant = units.tenant AND newer.user = units.user AND newer.id = units.superseded_by)
    OR covered_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM units AS summary, json_each(summary.body, '$.lineage.sources')
        WHERE summary.tenant = units.tenant AND summary.id = units.covered_by AND value = units.id)
ORDER BY key;

-- name: agreed
SELECT value FROM agreements WHERE name = :name;

-- name: page_of_agreements
SELECT rootpage FROM sqlite_schema WHERE name = 'agreements';

-- name: renew_agreement
UPDATE agreements SET value = :value WHERE name = :name;

-- name: agree
INSERT INTO agreements (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: agree_first
INSERT INTO agreements (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- name: waiting_units
SELECT {row}
FROM units
WHERE key > :after AND NOT EXISTS (SELECT 1 FROM vectors WHERE unit_key = key
    AND space = (SELECT key FROM spaces WHERE name = :space) AND vectors.version = units.version)
ORDER BY key LIMIT :limit;

-- name: waiting_count
SELECT count(*) FROM units
WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE unit_key = key AND space = (SELECT key FROM spaces WHERE name = :space)
    AND vectors.version = units.version);

-- name: name_space
INSERT INTO spaces (name) VALUES (:space) ON CONFLICT (name) DO NOTHING;

-- name: put_vector
INSERT INTO vectors (unit_key, space, version, vector, checksum)
SELECT key, (SELECT key FROM spaces WHERE name = :space), version, :vector, :checksum FROM units
WHERE tenant = :tenant AND user = :user AND id = :id AND version = :version
ON CONFLICT (unit_key) DO UPDATE SET space = excluded.space, version = excluded.version, vector = excluded.vector,
    checksum = excluded.checksum
RETURNING unit_key;

-- name: unit_states
SELECT key, units.checksum, superseded_by, covered_by, vectors.checksum FROM units
LEFT JOIN vectors ON unit_key = key AND vectors.version = units.version
    AND space = (SELECT key FROM spaces WHERE name = :space)
WHERE key IN (SELECT value FROM json_each(:keys)) ORDER BY key;

-- name: vectors_of_units
SELECT unit_key, vector, checksum FROM vectors
WHERE space = (SELECT key FROM spaces WHERE name = :space) AND unit_key IN (SELECT value FROM json_each(:keys));

-- name: vectors_of_versions
SELECT unit_key, vector, checksum, version FROM version_vectors
WHERE space = (SELECT key FROM spaces WHERE name = :space) AND unit_key IN (SELECT value FROM json_each(:keys)) ORDER BY unit_key, version;

-- name: owner_vectors
SELECT key, vector, vectors.checksum FROM vectors JOIN units ON key = unit_key AND units.version = vectors.version
WHERE tenant = :tenant AND user = :user AND space = (SELECT key FROM spaces WHERE name = :space) ORDER BY key;

-- name: units_by_key
SELECT {row}
FROM units
WHERE key IN (SELECT value FROM json_each(:keys));

-- name: funnel
SELECT rows, width FROM funnels
WHERE tenant = :tenant AND user = :user AND space = (SELECT key FROM spaces WHERE name = :space);

-- name: put_funnel
INSERT INTO funnels (tenant, user, space, rows, width)
VALUES (:tenant, :user, (SELECT key FROM spaces WHERE name = :space), :rows, :width)
ON CONFLICT (tenant, user) DO UPDATE SET space = excluded.space, rows = excluded.rows, width = excluded.width;

-- name: erase_funnel
DELETE FROM funnels WHERE tenant = :tenant AND user = :user;

-- name: space_vectors
SELECT vector, checksum, unit_key FROM vectors WHERE space = (SELECT key FROM spaces WHERE name = :space);

-- name: space_version_vectors
SELECT vector, checksum, unit_key, version FROM version_vectors
WHERE space = (SELECT key FROM spaces WHERE name = :space);

-- name: erase_version_vector
DELETE FROM version_vectors WHERE unit_key = :key AND version = :version;

-- name: all_vectors
SELECT unit_key, vector, checksum, space FROM vectors
UNION ALL SELECT unit_key, vector, checksum, space FROM version_vectors ORDER BY unit_key;

-- name: put_document
INSERT INTO documents (tenant, user, name, path, core, body, checksum, given_to)
VALUES (:tenant, :user, :name, :path, :core, :body, :checksum, :given_to)
ON CONFLICT (tenant, user, name) DO UPDATE SET path = excluded.path, core = excluded.core, body = excluded.body,
    checksum = excluded.checksum, given_to = excluded.given_to;

-- name: owner_documents
SELECT user, name, path, core, CASE WHEN :bodies THEN body ELSE x'' END, checksum, given_to FROM documents
WHERE tenant = :tenant AND user IN (:user, '') AND core IN (1, :least_core) AND name = coalesce(:name, name) ORDER BY key;

-- name: document_parts
SELECT id, json_extract(body, '$.expires_at') IS NULL FROM units
WHERE tenant = :tenant AND user = :user AND document = :name ORDER BY id;

-- name: documents_of_units
SELECT id, document FROM units
WHERE tenant = :tenant AND user IN (:user, '') AND id IN (SELECT value FROM json_each(:ids)) AND document IS NOT NULL
ORDER BY user;

-- name: document_of_unit
SELECT document FROM units WHERE key = :key;

-- name: count_access
UPDATE units SET access_count = access_count + 1
WHERE tenant = :tenant AND user = :user AND id IN (SELECT value FROM json_each(:ids))
    AND (:agent IS NULL OR coalesce(json_extract(body, '$.agent'), :agent) = :agent);

-- name: access_counts
SELECT key, access_count FROM units
WHERE tenant = :tenant AND user = :user AND key IN (SELECT value FROM json_each(:keys)) AND access_count > 0;

-- name: most_accessed
SELECT coalesce((SELECT access_count FROM units
    WHERE tenant = :tenant AND user = :user AND access_count > 0 AND key NOT IN (SELECT value FROM json_each(:keys))
    ORDER BY access_count DESC LIMIT 1), 0);

-- name: rewrite_unit
UPDATE units SET body = :body, checksum = :checksum WHERE key = :key;

-- name: rewrite_version
UPDATE versions SET body = :body, checksum = :checksum WHERE unit_key = :key AND version = :version;

-- name: put_gate
UPDATE units SET gate = :gate WHERE tenant = :tenant AND user = :user AND id = :id AND version = :version
RETURNING key, body, checksum;

-- name: cover_unit
UPDATE units SET covered_by = :by, covered_at = :at WHERE key = :key;

-- name: uncover_units
UPDATE units SET covered_by = NULL, covered_at = NULL
WHERE tenant = :tenant AND user = :user AND covered_by IN (SELECT value FROM json_each(:ids)) RETURNING key, id;

-- name: superseded_by
SELECT superseded_by FROM units WHERE tenant = :tenant AND user = :user AND id = :id;

-- name: owner_summaries
SELECT {row}
FROM units
-- An index knows the turns, so that only the bodies of the rest are read.
WHERE key IN (SELECT key FROM units WHERE tenant = :tenant AND user = :user EXCEPT SELECT key FROM units
        WHERE tenant = :tenant AND user = :user AND document IS NULL AND json_extract(body, '$.kind') IS NULL)
    AND json_extract(body, '$.kind') = 'summary'
ORDER BY key;

-- name: empty_units
DELETE FROM units;

-- name: erase_units
DELETE FROM units WHERE key IN (SELECT value FROM json_each(:keys));

-- name: empty_versions
DELETE FROM versions;

-- name: erase_versions
DELETE FROM versions WHERE unit_key IN (SELECT value FROM json_each(:keys));

-- name: empty_vectors
DELETE FROM vectors;

-- name: erase_vectors
DELETE FROM vectors WHERE unit_key IN (SELECT value FROM json_each(:keys));

-- name: empty_version_vectors
DELETE FROM version_vectors;

-- name: erase_version_vectors
DELETE FROM version_vectors WHERE unit_key IN (SELECT value FROM json_each(:keys));

-- name: erase_document
DELETE FROM documents WHERE tenant = :tenant AND user = :user AND name = :name RETURNING key;

-- name: mentioning_units
SELECT {row}
FROM units
WHERE tenant = :tenant AND (user = :user OR :user = '') AND (instr(body, '"supersedes"') OR instr(body, '"links"')) AND (
    EXISTS (SELECT 1 FROM json_each(body, '$.supersedes') WHERE value IN (SELECT value FROM json_each(:ids)))
    OR EXISTS (SELECT 1 FROM json_each(body, '$.links') WHERE value IN (SELECT value FROM json_each(:ids))));

-- name: mentioning_versions
SELECT unit_key, versions.version, versions.body FROM versions JOIN units ON key = unit_key
WHERE tenant = :tenant AND (user = :user OR :user = '') AND (
    EXISTS (SELECT 1 FROM json_each(versions.body, '$.supersedes') WHERE value IN (SELECT value FROM json_each(:ids)))
    OR EXISTS (SELECT 1 FROM json_each(versions.body, '$.links') WHERE value IN (SELECT value FROM json_each(:ids))));

-- name: forget_superseders
UPDATE units SET superseded_by = :erased, superseded_why = NULL
WHERE tenant = :tenant AND user = :user AND superseded_by IN (SELECT value FROM json_each(:ids))
RETURNING key;

-- name: record_backup
INSERT INTO backups (path, made_at) VALUES (:path, :at) ON CONFLICT (path) DO UPDATE SET made_at = excluded.made_at;

-- name: forget_backup
DELETE FROM backups WHERE path = :path;

-- name: backups
SELECT path FROM backups ORDER BY path;

-- name: kept
SELECT CAST(body || char(10) || tenant || char(10) || user || char(10) || id || char(10) || coalesce(session, '') AS BLOB)
FROM units
UNION ALL SELECT CAST(body AS BLOB) FROM versions
UNION ALL SELECT body FROM documents UNION ALL SELECT CAST(name || char(10) || path AS BLOB) FROM documents
UNION ALL SELECT DISTINCT CAST(tenant || char(10) || user AS BLOB) FROM changes
UNION ALL SELECT vector FROM vectors UNION ALL SELECT vector FROM version_vectors
UNION ALL SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE sql IS NOT NULL;

-- name: vectors_of_keys
SELECT vector FROM vectors WHERE unit_key IN (SELECT value FROM json_each(:keys))
UNION ALL SELECT vector FROM version_vectors WHERE unit_key IN (SELECT value FROM json_each(:keys));

-- name: disagree
DELETE FROM agreements WHERE name = :name AND value = :value;

-- name: list_users
SELECT user, count(*), min(event_time), max(event_time), '', 0, 0 FROM units WHERE tenant = :tenant AND user != ''
GROUP BY user ORDER BY user = :user DESC, max(event_time) DESC, user LIMIT :limit;

-- name: list_sessions
SELECT name, units, first, last, (SELECT substr(coalesce(nullif(trim(
    iif(json_type(body, '$.metadata.conversation') = 'text', json_extract(body, '$.metadata.conversation'), '')), ''),
    json_extract(body, '$.text')), 1, :words) FROM units
    WHERE tenant = :tenant AND user = :user AND session = name ORDER BY event_time, position, id LIMIT 1), 0, 0
FROM (SELECT session AS name, count(*) AS units, min(event_time) AS first, max(event_time) AS last FROM units
    WHERE tenant = :tenant AND user = :user AND session IS NOT NULL GROUP BY session
    ORDER BY last DESC, name LIMIT :limit);

-- name: list_agents
SELECT json_extract(body, '$.agent') AS name, count(*), min(event_time), max(event_time), '', 0, 0 FROM units
WHERE tenant = :tenant AND user = :user AND name IS NOT NULL
GROUP BY name ORDER BY max(event_time) DESC, name LIMIT :limit;

-- name: list_documents
SELECT name, count(id), min(event_time), max(event_time), '', core, documents.user = '' FROM documents
LEFT JOIN units ON units.tenant = documents.tenant AND units.user = documents.user AND document = name
    AND json_extract(units.body, '$.expires_at') IS NULL
WHERE documents.tenant = :tenant AND documents.user IN (:user, '')
GROUP BY documents.key ORDER BY max(event_time) DESC, name LIMIT :limit;

-- name: tenants
SELECT tenant FROM units UNION SELECT tenant FROM documents ORDER BY tenant;

-- name: note_copy
INSERT INTO copies (path, kind, tenant, user, id) VALUES (:path, :kind, :tenant, :user, :id);

-- name: noted_copies
SELECT DISTINCT path FROM copies ORDER BY path;

-- name: notes_of_copy
SELECT kind, tenant, user, id FROM copies WHERE path = :path ORDER BY kind, tenant, user, id;

-- name: forget_notes
DELETE FROM copies WHERE path = :path;

-- name: forget_noted
DELETE FROM copies WHERE path = :path AND (kind, tenant, user, id) IN
    (SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:notes));

-- name: erase_changes
DELETE FROM changes WHERE tenant = :tenant AND user = :user;

-- name: kept_keys
SELECT key FROM units WHERE tenant = :tenant AND (:whole OR user = :user) AND (:session IS NULL OR session = :session)
ORDER BY key;

-- name: kept_units
SELECT {row}, superseded_at, covered_at, document
FROM units WHERE key IN (SELECT value FROM json_each(:keys)) ORDER BY key;

-- name: kept_absences
SELECT unit_key, by, since, until FROM absences WHERE unit_key IN (SELECT value FROM json_each(:keys)) ORDER BY rowid;

-- name: kept_vectors
SELECT unit_key, vector, checksum, version, name FROM vectors JOIN spaces ON spaces.key = space
WHERE unit_key IN (SELECT value FROM json_each(:keys))
UNION ALL SELECT unit_key, vector, checksum, version, name FROM version_vectors JOIN spaces ON spaces.key = space
WHERE unit_key IN (SELECT value FROM json_each(:keys));

-- name: kept_document_keys
SELECT key FROM documents WHERE tenant = :tenant AND (:whole OR user = :user) ORDER BY key;

-- name: kept_document
SELECT user, name, core, body, checksum FROM documents WHERE key = :key;

-- name: write_fate
UPDATE units SET superseded_by = :superseded_by, superseded_at = :superseded_at, superseded_why = :superseded_why,
    covered_by = :covered_by, covered_at = :covered_at, gate = :gate, access_count = :access_count WHERE key = :key;

-- name: insert_version
INSERT INTO versions (unit_key, version, body, checksum) VALUES (:key, :version, :body, :checksum);

-- name: insert_absence
INSERT INTO absences (unit_key, by, since, until) VALUES (:key, :by, :since, :until);

-- name: insert_version_vector
INSERT INTO version_vectors (unit_key, version, space, vector, checksum)
VALUES (:key, :version, (SELECT key FROM spaces WHERE name = :space), :vector, :checksum);
