-- Which document a unit is part of; NULL for what was remembered. Ids do not tell: a document may be called `a#b`.
ALTER TABLE units ADD COLUMN document TEXT;

-- Until now a part was known by its id, which begins with the name of its document: the longest name that fits. Ids
-- like that are anyone's to choose, so what follows the name must be what a reader writes: a hash, the number of a
-- node, or an id that the document itself gives; or a reader must have ended the unit, at the moment of its reading.
UPDATE units SET document = (
    SELECT name FROM (
        SELECT name, CAST(body AS TEXT) AS said, substr(units.id, length(name) + 2) AS rest FROM documents
        WHERE documents.tenant = units.tenant AND documents.user = units.user
            AND substr(units.id, 1, length(name) + 1) = name || '#'
    )
    WHERE rest GLOB replace(hex(zeroblob(10)), '0', '[0-9a-f]')
        OR json_extract(units.body, '$.kind') = 'authored' AND rest GLOB '[0-9][0-9][0-9][0-9][0-9][0-9]'
        OR json_extract(units.body, '$.kind') = 'knowledge' AND (
            json_extract(units.body, '$.expires_at') = json_extract(units.body, '$.recorded_time')
            OR (lower(name) GLOB '*.json' OR lower(name) GLOB '*.y*ml') AND (
                instr(said, '"' || rest || '"') OR instr(said, '''' || rest || '''')
                OR instr(said, 'id: ' || rest) OR instr(said, units.id)))
    ORDER BY length(name) DESC LIMIT 1
) WHERE instr(id, '#') AND (
    json_extract(body, '$.kind') = 'knowledge' AND json_extract(body, '$.origin') = 'document'
        AND json_extract(body, '$.author') = 'document' AND session IS NULL
    OR json_extract(body, '$.kind') = 'authored' AND json_extract(body, '$.origin') = 'authored'
        AND json_extract(body, '$.author') = 'document'
    OR json_extract(body, '$.kind') IS NULL AND session IS NULL);  -- a message of a file of messages

-- Parts of a document that is kept no longer: a reader has ended them, and a request to forget it names them.
UPDATE units SET document = substr(id, 1, length(rtrim(id, replace(id, '#', ''))) - 1)
WHERE document IS NULL AND instr(id, '#') > 1 AND json_extract(body, '$.author') = 'document'
    AND (json_extract(body, '$.kind') = 'knowledge' AND json_extract(body, '$.origin') = 'document'
        OR json_extract(body, '$.kind') = 'authored' AND json_extract(body, '$.origin') = 'authored')
    AND json_extract(body, '$.expires_at') = json_extract(body, '$.recorded_time');

CREATE INDEX units_of_document ON units (tenant, user, document, id) WHERE document IS NOT NULL;

-- The turns of a conversation in the order in which they came: a list is compared with the last of them (C1).
CREATE INDEX units_in_conversation ON units (tenant, user, session, coalesce(json_extract(body, '$.agent'), ''))
WHERE document IS NULL AND json_extract(body, '$.kind') IS NULL;

-- Where this store lay when a document's path was given to it. A store that lies elsewhere came from elsewhere,
-- perhaps from somebody else: its paths are not read. Of older documents nobody knows.
ALTER TABLE documents ADD COLUMN given_to TEXT NOT NULL DEFAULT '';
