-- Every statement that a reading runs, by name. `{where}` is filled with a compiled view over `units`; values never are.
-- What is found is ordered first and looked up in `units` afterwards, row by row, as far as rows are asked for: a reading
-- sees nearly all of what it finds, and a row of `units` costs more than a posting or a distance.

-- ------------------------------------------------------------------------------------------- what is known of an owner

-- name: owner_counts
-- And, as a row of its own, the embedding space that is searched: whether it has an index, and its number.
SELECT kind::text, name, agent, sum(n)::bigint FROM counts
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND kind IN ('u', 'f', 's') AND n > 0
GROUP BY kind, name, agent
UNION ALL
SELECT 'space', value, coalesce((SELECT indisvalid FROM pg_index
    WHERE indexrelid = to_regclass('vectors_space_' || key)), false)::text, key
FROM agreements LEFT JOIN spaces ON spaces.name = value WHERE agreements.name = 'space';

-- name: term_counts
-- Units that the agent may see, and of all agents.
SELECT name, coalesce(sum(n) FILTER (WHERE %(agent)s::text IS NULL OR agent IN (%(agent)s, '')), 0)::bigint, sum(n)::bigint
FROM counts
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND kind = 't'
    AND name = ANY(%(terms)s::text[])
GROUP BY name;

-- name: known
-- Not a statement: what a reading knows of a unit (`CachedRow`), from `units` and `entries`. The last column packs how often
-- a field holds one of the terms: the term's place · 16 + the field in the upper half of a number.
units.id, units.key, units."user", units.version, units.session, units.scope, units.kind, units.covered_by,
    author, speaker, role, event_us, starts_us, ends_us, decay_rate, length, said, stating, anchor_density, lengths,
    CASE WHEN terms && %(terms)s::text[] THEN ARRAY(
        SELECT ((array_position(%(terms)s::text[], held.term)::bigint - 1) * 16 + held.field << 32) | held.tf
        FROM unnest(terms, fields, tfs) AS held (term, field, tf) WHERE held.term = ANY(%(terms)s::text[])
    ) END;

-- name: entry
-- Not a statement: the row of `entries` of a row of `units`.
CROSS JOIN LATERAL (
    SELECT author, speaker, role, event_us, starts_us, ends_us, decay_rate, length, said, stating, anchor_density, lengths,
        terms, fields, tfs FROM entries
    WHERE entries.tenant = %(tenant)s AND entries.unit_key = units.key LIMIT 1
) AS entry;

-- name: known_units
SELECT {known} FROM units {entry}
WHERE units.tenant = %(tenant)s AND units."user" IN (%(user)s, '')
    AND units.id = ANY(%(ids)s::text[]) AND (%(agent)s::text IS NULL OR units.agent IN (%(agent)s, ''))
ORDER BY units."user";  -- everyone's first, so that a user's own of the same id takes its place

-- ------------------------------------------------------------------------------------------------------------- words

-- name: words_exactly
WITH asked AS (
    SELECT term, idf, owner FROM unnest(%(terms)s::text[], %(idfs)s::float8[]) AS given (term, idf)
    CROSS JOIN unnest(%(users)s::text[]) AS owners (owner)
),
scored AS MATERIALIZED (
    SELECT unit_key, sum(asked.idf * (%(weights)s::float8[])[field + 1] * (%(boosts)s::float8[])[role + 1] * tf
        / (tf + %(base)s::float8 + (%(slopes)s::float8[])[field + 1] * length)) AS score
    FROM asked CROSS JOIN LATERAL (
        SELECT unit_key, field, role, tf, length FROM postings
        WHERE postings.tenant = %(tenant)s AND postings."user" = asked.owner
            AND postings.term = asked.term {among}
        OFFSET 0  -- term by term, and nothing else of an owner
    ) AS found
    GROUP BY unit_key
)
SELECT {known}, best.score
FROM (SELECT unit_key, score FROM scored WHERE score > 0 ORDER BY score DESC LIMIT %(walked)s::bigint) AS best
CROSS JOIN LATERAL (SELECT units.* FROM units WHERE units.key = best.unit_key AND {where} LIMIT 1) AS units {entry}
LIMIT %(most)s::bigint;

-- name: among_seen
-- What stands for `among` when a view hides most of what is found. Not a join: what may be seen is hashed, whatever a plan
-- expects of it.
AND (unit_key IN (SELECT units.key FROM units WHERE {where})) IS TRUE;

-- name: words_nearly
-- Of each term the postings of highest impact, all of them or not (`cut`). What a unit holds of the others is guessed by the
-- bits of its terms: a term that it seems to hold stands there once, in the same field. The best by that are read, and
-- scored by all terms; of a term that stands in more than two fields, by the first two.
WITH asked AS (
    SELECT term, idf, most, CASE WHEN cut THEN idf ELSE 0 END AS guessed, owner
    FROM unnest(%(rarest)s::text[], %(rare_idfs)s::float8[], %(limits)s::bigint[], %(cut)s::boolean[])
        AS given (term, idf, most, cut)
    CROSS JOIN unnest(%(users)s::text[]) AS owners (owner)
),
found AS MATERIALIZED (
    SELECT unit_key, sum(weight * (idf * tf / (tf + norm) - guessed / (1 + norm)))
        + max(weight / (1 + norm)) * ({guess}) AS score
    FROM (
        SELECT unit_key, low, high, idf, guessed, tf, %(base)s::float8 + (%(slopes)s::float8[])[field + 1] * length AS norm,
            (%(weights)s::float8[])[field + 1] * (%(boosts)s::float8[])[role + 1] AS weight
        FROM asked CROSS JOIN LATERAL (
            SELECT unit_key, low, high, field, role, tf, length FROM postings
            WHERE postings.tenant = %(tenant)s AND postings."user" = asked.owner
                AND postings.term = asked.term
            ORDER BY impact DESC LIMIT asked.most
        ) AS best OFFSET 0
    ) AS posting
    GROUP BY unit_key
),
scored AS MATERIALIZED (
    SELECT unit_key, (%(boosts)s::float8[])[array_position(%(roles)s::text[], role)] * (
        SELECT sum(idf * (
            (%(weights)s::float8[])[fields[place] + 1] * tfs[place]
                / (tfs[place] + %(base)s::float8 + (%(slopes)s::float8[])[fields[place] + 1] * lengths[fields[place] + 1])
            + coalesce((%(weights)s::float8[])[fields[again] + 1] * tfs[again]
                / (tfs[again] + %(base)s::float8 + (%(slopes)s::float8[])[fields[again] + 1] * lengths[fields[again] + 1]), 0)))
        FROM (
            SELECT idf, place, array_position(terms, term, place + 1) AS again FROM (
                SELECT idf, term, array_position(terms, given.term) AS place
                FROM unnest(%(rarest)s::text[], %(rare_idfs)s::float8[]) AS given (term, idf) OFFSET 0
            ) AS first WHERE place IS NOT NULL OFFSET 0
        ) AS held
    ) AS score
    FROM entries
    WHERE tenant = %(tenant)s
        AND unit_key = ANY(ARRAY(SELECT unit_key FROM found ORDER BY score DESC LIMIT %(read)s::bigint))
)
SELECT {known}, best.score
FROM (SELECT unit_key, score FROM scored WHERE score > 0 ORDER BY score DESC LIMIT %(walked)s::bigint) AS best
CROSS JOIN LATERAL (SELECT units.* FROM units WHERE units.key = best.unit_key AND {where} LIMIT 1) AS units {entry}
LIMIT %(most)s::bigint;

-- ----------------------------------------------------------------------------------------------------------- vectors

-- name: nearest_exactly
SELECT {known}, near.vector, near.checksum, 1 - near.distance FROM (
    SELECT unit_key, version, vector, checksum, {distance} AS distance FROM vectors
    WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND space = %(space)s
        AND vector_dims(vector) = %(dims)s
    ORDER BY distance LIMIT %(walked)s::bigint
) AS near
CROSS JOIN LATERAL (
    SELECT units.* FROM units WHERE units.key = near.unit_key AND units.version = near.version AND {where} {also} LIMIT 1
) AS units {entry}
LIMIT %(most)s::bigint;

-- name: nearest_seen
-- The same for a view that hides most units: from those that it shows.
SELECT {known}, units.vector, units.vector_checksum, 1 - units.distance FROM (
    SELECT units.*, near.* FROM units CROSS JOIN LATERAL (
        SELECT vector, checksum AS vector_checksum, {distance} AS distance FROM vectors
        WHERE vectors.tenant = %(tenant)s AND vectors.unit_key = units.key
            AND vectors.version = units.version AND vectors.space = %(space)s AND vector_dims(vectors.vector) = %(dims)s
        LIMIT 1
    ) AS near
    WHERE {where} {also}
    ORDER BY near.distance LIMIT %(most)s::bigint
) AS units {entry}
ORDER BY units.distance;

-- name: nearest_nearly
-- What the graph leads to, compared by all dimensions.
SELECT {known}, near.vector, near.checksum, 1 - near.distance FROM (
    SELECT * FROM (
        SELECT unit_key, version, vector, checksum, {distance} AS distance FROM vectors {through}
        WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND space = {space}
        ORDER BY {indexed} LIMIT %(width)s::bigint
    ) AS led
    ORDER BY distance LIMIT %(walked)s::bigint
) AS near
CROSS JOIN LATERAL (
    SELECT units.* FROM units WHERE units.key = near.unit_key AND units.version = near.version AND {where} LIMIT 1
) AS units {entry}
LIMIT %(most)s::bigint;

-- name: through_seen
-- What stands for `through` when a view hides much: the graph goes on until there are enough that the view shows, and only
-- the rows that it comes by are looked up.
CROSS JOIN LATERAL (
    SELECT 1 FROM units WHERE units.key = vectors.unit_key AND units.version = vectors.version AND {where} LIMIT 1
) AS seen;

-- name: walk_graphs
-- The graph is chosen because the other way sorts: what it costs to compare all, no plan knows without samples of users.
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %(held)s::text, true),
    set_config('hnsw.max_scan_tuples', %(scanned)s::text, true), set_config('enable_sort', 'off', true);

-- name: sort_again
SELECT set_config('enable_sort', 'on', true);

-- name: vectors_by_key
SELECT unit_key, vector, checksum, version FROM vectors
WHERE tenant = %(tenant)s AND space = %(space)s AND unit_key = ANY(%(keys)s::bigint[]);

-- name: compared_units
-- The user's own turns and durable units.
SELECT key, version, kind = 'turn', scope = 'user' FROM units WHERE {where} AND (kind = 'turn' OR scope = 'user');

-- name: similar_nearly
-- For each vector what the graph leads to of the user's own: turns, and durable units.
SELECT number - 1, is_durable, unit_key, vector, checksum
FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS given (text, number)
CROSS JOIN LATERAL (
    (SELECT false AS is_durable, unit_key, vector, checksum FROM vectors
    WHERE tenant = %(tenant)s AND "user" = %(user)s AND space = {space}
        AND (SELECT true FROM units WHERE units.key = vectors.unit_key AND units.version = vectors.version
            AND kind = 'turn' AND {where} LIMIT 1)
    ORDER BY {indexed} <=> text::halfvec LIMIT %(turns)s::bigint)
    UNION ALL
    (SELECT true, unit_key, vector, checksum FROM vectors
    WHERE tenant = %(tenant)s AND "user" = %(user)s AND space = {space}
        AND (SELECT true FROM units WHERE units.key = vectors.unit_key AND units.version = vectors.version
            AND scope = 'user' AND {where} LIMIT 1)
    ORDER BY {indexed} <=> text::halfvec LIMIT %(durable)s::bigint)
) AS near;

-- ------------------------------------------------------------------------------------------------------ hypervectors

-- name: heard_units
-- Of one owner's units before a key, the newest first: the last key that was looked at and how many were, then what is near.
WITH block AS MATERIALIZED (
    SELECT unit_key, role, acts, (topic <~> %(text)s::bit(4096))::integer AS topic,
        (claim <~> %(text)s::bit(4096))::integer AS claim
    FROM entries
    WHERE tenant = %(tenant)s AND "user" = %(owner)s AND unit_key < %(before)s::bigint
    ORDER BY unit_key DESC LIMIT %(together)s::bigint
)
SELECT NULL, min(unit_key), count(*), NULL, NULL FROM block
UNION ALL
SELECT seen.id, topic::bigint, claim::bigint, role, acts FROM block
CROSS JOIN LATERAL (SELECT units.id FROM units WHERE units.key = block.unit_key AND {where} LIMIT 1) AS seen
WHERE least(topic, claim) <= %(farthest)s;

-- name: hyper_distances
SELECT unit_key, (topic <~> %(text)s::bit(4096))::integer, (claim <~> %(text)s::bit(4096))::integer, role, acts
FROM entries WHERE tenant = %(tenant)s AND unit_key = ANY(%(keys)s::bigint[]);

-- ------------------------------------------------------------------------------------- statements, documents, columns

-- name: stating_units
SELECT seen.event_time, seen.position, seen.id FROM entries CROSS JOIN LATERAL (
    SELECT units.event_time, units.position, units.id FROM units WHERE units.key = entries.unit_key AND {where} LIMIT 1
) AS seen
WHERE entries.tenant = %(tenant)s AND entries."user" IN (%(user)s, '')
    AND entries.stating > 0 AND entries.stating & %(stating)s::smallint > 0
ORDER BY seen.event_time DESC, seen.position DESC, seen.id DESC LIMIT %(most)s::bigint;

-- name: units_of_kinds
SELECT units.id FROM units WHERE {where} AND units.kind = ANY(%(kinds)s::text[]) LIMIT %(most)s::bigint;

-- name: parts_of_document
SELECT "user", id, strpos(body, '"expires_at"') = 0 OR body::json ->> 'expires_at' IS NULL FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND document = %(name)s ORDER BY id;

-- name: units_beside
-- The turn before and the turn after each, and, when two are asked for, the one beyond that. The session is compared once
-- more, so that no index but that of sessions fits.
SELECT here.id, units.side, units.beyond, {known} FROM units AS here CROSS JOIN LATERAL (
    (SELECT 0 AS side, near.*, lead(near.id) OVER () AS beyond FROM (
        SELECT units.id, units.key, units."user", units.version, units.session, units.scope, units.kind, units.covered_by
        FROM units
        WHERE units."user" = here."user" AND units.session = here.session AND units.kind = 'turn'
            AND (units.session, units.event_time, units.position, units.key)
                < (here.session, here.event_time, here.position, here.key) AND {where}
        ORDER BY units.event_time DESC, units.position DESC, units.key DESC LIMIT %(turns)s::bigint
    ) AS near LIMIT 1)
    UNION ALL
    (SELECT 1, near.*, lead(near.id) OVER () FROM (
        SELECT units.id, units.key, units."user", units.version, units.session, units.scope, units.kind, units.covered_by
        FROM units
        WHERE units."user" = here."user" AND units.session = here.session AND units.kind = 'turn'
            AND (units.session, units.event_time, units.position, units.key)
                > (here.session, here.event_time, here.position, here.key) AND {where}
        ORDER BY units.event_time, units.position, units.key LIMIT %(turns)s::bigint
    ) AS near LIMIT 1)
) AS units {entry}
WHERE here.tenant = %(tenant)s AND here.key = ANY(%(keys)s::bigint[]);

-- name: documents_by_id
SELECT id, document FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND id = ANY(%(ids)s::text[])
    AND document IS NOT NULL
ORDER BY "user";

-- name: access_by_key
SELECT key, access_count FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND key = ANY(%(keys)s::bigint[]) AND access_count > 0
UNION ALL SELECT NULL, max(access_count) FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND access_count > 0 AND key <> ALL(%(keys)s::bigint[]);

-- --------------------------------------------------------------------------------------------------------------- units

-- name: units_by_id
SELECT {row} FROM units
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND id = ANY(%(ids)s::text[])
    AND (%(agent)s::text IS NULL OR agent IN (%(agent)s, ''))
ORDER BY "user";

-- name: scan_owner_newest
(SELECT {row} FROM units WHERE {own} ORDER BY event_time DESC, position DESC, id DESC LIMIT %(most)s::bigint)
UNION ALL
(SELECT {row} FROM units WHERE {everyones} ORDER BY event_time DESC, position DESC, id DESC LIMIT %(most)s::bigint)
ORDER BY event_time DESC, position DESC, id DESC LIMIT %(most)s::bigint;

-- name: scan_owner_oldest
(SELECT {row} FROM units WHERE {own} ORDER BY event_time, position, id LIMIT %(most)s::bigint)
UNION ALL
(SELECT {row} FROM units WHERE {everyones} ORDER BY event_time, position, id LIMIT %(most)s::bigint)
ORDER BY event_time, position, id LIMIT %(most)s::bigint;

-- name: versions_of_unit
SELECT {version} FROM versions
WHERE tenant = %(tenant)s AND unit_key = %(key)s ORDER BY version;

-- name: past_versions
-- What has been rewritten since a moment, as it was then; and what had become of it.
SELECT former.key, former.body, former.checksum, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, former.version, NULL, NULL, NULL,
    CASE WHEN now.superseded_at <= %(as_of)s THEN now.superseded_by END,
    CASE WHEN now.covered_at <= %(as_of)s THEN now.covered_by END,
    (SELECT by FROM absences WHERE absences.tenant = %(tenant)s
        AND absences.unit_key = now.key AND since <= %(as_of)s AND until > %(as_of)s LIMIT 1),
    now."user" = '' AND %(user)s <> '' AND EXISTS (SELECT 1 FROM units AS own
        WHERE own.tenant = %(tenant)s AND own."user" = %(user)s AND own.id = now.id
            AND (%(agent)s::text IS NULL OR own.agent IN (%(agent)s, '')))
FROM units AS now CROSS JOIN LATERAL (
    SELECT unit_key AS key, version, body, checksum FROM versions
    WHERE versions.tenant = %(tenant)s AND versions.unit_key = now.key
        AND (versions.body::json ->> 'recorded_time') COLLATE "C" <= %(as_of)s
    ORDER BY version DESC LIMIT 1
) AS former
WHERE now.tenant = %(tenant)s AND now."user" IN (%(user)s, '') AND now.version > 1
    AND now.recorded_time > %(as_of)s
ORDER BY now.key;

-- name: past_vectors
SELECT unit_key, vector, checksum, version FROM version_vectors
WHERE tenant = %(tenant)s AND space = %(space)s AND unit_key = ANY(%(keys)s::bigint[]);

-- name: lifetimes_by_key
SELECT key, CASE WHEN superseded_at <= %(as_of)s THEN superseded_by END,
    CASE WHEN covered_at <= %(as_of)s THEN covered_by END,
    (SELECT by FROM absences WHERE absences.tenant = %(tenant)s
        AND absences.unit_key = units.key AND since <= %(as_of)s AND until > %(as_of)s LIMIT 1)
FROM units WHERE tenant = %(tenant)s AND key = ANY(%(keys)s::bigint[]);

-- -------------------------------------------------------------------------------------------------------------- names

-- name: named_units
-- A name that leads to more units than `most` comes without any; nobody counts the rest.
WITH asked AS (SELECT DISTINCT name FROM unnest(%(names)s::text[]) AS given (name)),
led AS MATERIALIZED (
    SELECT asked.name, array_agg(DISTINCT found.unit_key) AS keys FROM asked CROSS JOIN LATERAL (
        SELECT unit_key FROM names
        WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND names.name = asked.name
            AND kind = ANY(%(kinds)s::text[]::"char"[])
        LIMIT (%(most)s::bigint + 1) * cardinality(%(kinds)s::text[])
    ) AS found
    GROUP BY asked.name
)
SELECT led.name, units.id FROM led CROSS JOIN LATERAL unnest(led.keys) AS led_to (key)
CROSS JOIN LATERAL (
    SELECT units.id FROM units WHERE units.key = led_to.key AND {where} LIMIT 1
) AS units
WHERE cardinality(led.keys) <= %(most)s::bigint
UNION ALL SELECT name, NULL FROM led WHERE cardinality(keys) > %(most)s::bigint;

-- name: list_owned_users
SELECT "user", count(*), min(event_time), max(event_time), '', 0, false FROM units
WHERE tenant = %(tenant)s AND "user" <> ''
GROUP BY "user" ORDER BY "user" = %(user)s DESC, max(event_time) DESC, "user" LIMIT %(most)s::bigint;

-- name: list_owned_sessions
SELECT name, units, first, last, (
    SELECT left(coalesce(nullif(trim(CASE json_typeof(body::json #> '{metadata,conversation}')
        WHEN 'string' THEN body::json #>> '{metadata,conversation}' END), ''), body::json ->> 'text'),
        %(words)s::integer) FROM units
    WHERE units.tenant = %(tenant)s AND units."user" = %(user)s AND units.session = listed.name
    ORDER BY event_time, position, id LIMIT 1), 0, false
FROM (SELECT session AS name, count(*) AS units, min(event_time) AS first, max(event_time) AS last FROM units
    WHERE tenant = %(tenant)s AND "user" = %(user)s AND session IS NOT NULL GROUP BY session
    ORDER BY last DESC, name LIMIT %(most)s::bigint) AS listed
ORDER BY last DESC, name;

-- name: list_owned_agents
SELECT agent, count(*), min(event_time), max(event_time), '', 0, false FROM units
WHERE tenant = %(tenant)s AND "user" = %(user)s AND agent <> ''
GROUP BY agent ORDER BY max(event_time) DESC, agent LIMIT %(most)s::bigint;

-- name: list_owned_documents
SELECT documents.name, count(id), min(event_time), max(event_time), '', max(core), documents."user" = '' FROM documents
LEFT JOIN units ON units.tenant = %(tenant)s AND units."user" = documents."user"
    AND document = documents.name
    AND (strpos(units.body, '"expires_at"') = 0 OR units.body::json ->> 'expires_at' IS NULL)
WHERE documents.tenant = %(tenant)s AND documents."user" IN (%(user)s, '')
GROUP BY documents.key, documents.name, documents."user"
ORDER BY max(event_time) DESC NULLS LAST, documents.name LIMIT %(most)s::bigint;

-- name: documents_of_owner
SELECT "user", name, path, core, CASE WHEN %(bodies)s THEN body ELSE '' END, checksum, given_to FROM documents
WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '') AND core IN (1, %(least_core)s::integer)
    AND name = coalesce(%(name)s::text, name)
ORDER BY key;

-- -------------------------------------------------------------------------------------------------------------- facts

-- name: symbols_with
SELECT owner, best.symbol FROM unnest(%(users)s::text[]) AS owners (owner) CROSS JOIN LATERAL (
    SELECT found.symbol FROM (
        SELECT symbol, min(token) AS token, count(DISTINCT token) AS held, max(tokens) AS tokens FROM symbols
        WHERE tenant = %(tenant)s AND "user" = owner AND token = ANY(%(tokens)s::text[])
        GROUP BY symbol ORDER BY count(DISTINCT token) = max(tokens) DESC, count(DISTINCT token) DESC, symbol
    ) AS found
    CROSS JOIN LATERAL (
        SELECT 1 FROM symbols AS here CROSS JOIN LATERAL (
            SELECT units.id FROM units WHERE units.key = here.unit_key AND {where} LIMIT 1
        ) AS units
        WHERE here.tenant = %(tenant)s AND here."user" = owner
            AND here.token = found.token AND here.symbol = found.symbol LIMIT 1
    ) AS seen
    LIMIT %(most)s::bigint
) AS best;

-- name: facts_about
-- Of each owner, symbol, relation and side the first, as `VisibleFacts` orders them. `further` and `elsewhere` say whether
-- the other end has another fact of the same owner, or any of another one or of the past.
WITH stated AS (
    SELECT symbol, 'object' AS side, subject AS far, facts."user", subject, relation, object, max(confidence) AS confidence,
        array_agg(units.id ORDER BY units.id) AS sources
    FROM unnest(%(symbols)s::text[]) AS asked (symbol) JOIN facts ON facts.tenant = %(tenant)s AND facts."user" IN (%(user)s, '') AND facts.object = symbol
    CROSS JOIN LATERAL (
        SELECT units.id FROM units WHERE units.key = facts.unit_key AND {where} LIMIT 1
    ) AS units
    GROUP BY symbol, facts."user", subject, relation, object
    UNION ALL
    SELECT symbol, 'subject', object, facts."user", subject, relation, object, max(confidence),
        array_agg(units.id ORDER BY units.id)
    FROM unnest(%(symbols)s::text[]) AS asked (symbol) JOIN facts ON facts.tenant = %(tenant)s AND facts."user" IN (%(user)s, '') AND facts.subject = symbol
    CROSS JOIN LATERAL (
        SELECT units.id FROM units WHERE units.key = facts.unit_key AND {where} LIMIT 1
    ) AS units
    GROUP BY symbol, facts."user", subject, relation, object
),
joined AS (
    SELECT stated.*,
        EXISTS (SELECT 1 FROM facts AS more CROSS JOIN LATERAL (
            SELECT units.id FROM units WHERE units.key = more.unit_key AND {where} LIMIT 1
        ) AS units
            WHERE more.tenant = %(tenant)s AND more."user" = stated."user"
                AND more.subject = far AND (more.subject, more.relation, more.object)
                    <> (stated.subject, stated.relation, stated.object))
        OR EXISTS (SELECT 1 FROM facts AS more CROSS JOIN LATERAL (
            SELECT units.id FROM units WHERE units.key = more.unit_key AND {where} LIMIT 1
        ) AS units
            WHERE more.tenant = %(tenant)s AND more."user" = stated."user"
                AND more.object = far AND (more.subject, more.relation, more.object)
                    <> (stated.subject, stated.relation, stated.object)) AS further,
        EXISTS (SELECT 1 FROM facts AS more CROSS JOIN LATERAL (
            SELECT units.id FROM units WHERE units.key = more.unit_key AND {where} LIMIT 1
        ) AS units
            WHERE more.tenant = %(tenant)s AND more."user" = ANY(%(users)s::text[])
                AND more."user" <> stated."user" AND more.subject = far)
        OR EXISTS (SELECT 1 FROM facts AS more CROSS JOIN LATERAL (
            SELECT units.id FROM units WHERE units.key = more.unit_key AND {where} LIMIT 1
        ) AS units
            WHERE more.tenant = %(tenant)s AND more."user" = ANY(%(users)s::text[])
                AND more."user" <> stated."user" AND more.object = far)
        OR far = ANY(%(earlier)s::text[]) AS elsewhere
    FROM stated
),
ranked AS (
    SELECT joined.*, row_number() OVER (PARTITION BY "user", symbol, relation, side
        ORDER BY further OR elsewhere DESC, confidence DESC, subject, object) AS rank
    FROM joined
)
SELECT "user", far, subject, relation, object, confidence, sources, further, elsewhere FROM ranked
WHERE rank <= %(most)s::bigint ORDER BY "user", symbol, relation, side, rank;

-- name: facts_between
SELECT found."user", subject, relation, object, max(confidence), array_agg(units.id ORDER BY units.id) FROM (
    SELECT "user", subject, relation, object, confidence, unit_key FROM facts
    WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '')
        AND subject = ANY(%(left)s::text[]) AND object = ANY(%(right)s::text[])
    UNION SELECT "user", subject, relation, object, confidence, unit_key FROM facts
    WHERE tenant = %(tenant)s AND "user" IN (%(user)s, '')
        AND object = ANY(%(left)s::text[]) AND subject = ANY(%(right)s::text[])
) AS found CROSS JOIN LATERAL (
    SELECT units.id FROM units WHERE units.key = found.unit_key AND {where} LIMIT 1
) AS units
GROUP BY found."user", subject, relation, object ORDER BY subject, relation, object;

-- name: symbol_touched
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT unit_key FROM facts WHERE tenant = %(tenant)s AND "user" = %(owner)s
            AND subject = %(symbol)s
            AND (subject, relation, object) IS DISTINCT FROM (%(subject)s::text, %(relation)s::text, %(object)s::text)
        UNION ALL SELECT unit_key FROM facts WHERE tenant = %(tenant)s AND "user" = %(owner)s
            AND object = %(symbol)s
            AND (subject, relation, object) IS DISTINCT FROM (%(subject)s::text, %(relation)s::text, %(object)s::text)
    ) AS found CROSS JOIN LATERAL (
        SELECT units.id FROM units WHERE units.key = found.unit_key AND {where} LIMIT 1
    ) AS units);
