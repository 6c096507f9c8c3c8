-- Stores made before could be spread over servers: every table had partitions, and a column with their number. Of a store
-- on one server the partition 0 has all rows. It becomes the table; rows stay where they are, and only the indexes that
-- held the number are made anew. A store that is made new has no partitions, and nothing is done.
DO $$
DECLARE
    one text;
    text text;
    anew text[];
BEGIN
    IF to_regclass('shards') IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('maintenance_work_mem', '512MB', true);
    FOR one IN SELECT server FROM shards WHERE server IS NOT NULL LOOP
        EXECUTE format('DROP SERVER IF EXISTS %I CASCADE', one);  -- tenants have left it, else nobody came so far
    END LOOP;
    DROP FUNCTION tell_shards CASCADE;
    FOREACH one IN ARRAY ARRAY(
        SELECT relname::text FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'p')
    LOOP
        anew := ARRAY(SELECT indexdef FROM pg_indexes
            WHERE schemaname = 'holdfast' AND tablename = one || '_0' AND indexdef ~ ', shard\M');
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', one, one || '_0');
        EXECUTE format('DROP TABLE %I', one);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', one || '_0', one);
        EXECUTE format('ALTER TABLE %I DROP COLUMN shard', one);
        FOREACH text IN ARRAY anew LOOP
            EXECUTE regexp_replace(regexp_replace(text, ', shard\M', ''), 'INDEX \S+ ON (\S+)_0 ', 'INDEX ON \1 ');
        END LOOP;
        FOREACH text IN ARRAY ARRAY(
            SELECT indexname::text FROM pg_indexes
            WHERE schemaname = 'holdfast' AND tablename = one AND starts_with(indexname, one || '_0_'))
        LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', text, one || substr(text, length(one) + 3));
        END LOOP;
    END LOOP;
    -- Indexes that an interrupted load has yet to make, as JSON, and what an erasure has yet to write anew.
    UPDATE agreements SET name = 'loading',
        value = regexp_replace(regexp_replace(value, ', shard\M', '', 'g'), 'INDEX \S+ ON (\S+)_0 ', 'INDEX ON \1 ', 'g')
    WHERE name = 'loading 0';
    UPDATE agreements SET name = 'erasing' WHERE name = 'erasing 0';
    ALTER TABLE tenants DROP COLUMN shard;
    DROP TABLE moves, shards;
END $$;
