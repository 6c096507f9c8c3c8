-- What happens to a unit over time, kept outside its versions: none of it changes what the unit says.
-- `covered_by` names the summary that stands for a turn (C18), `covered_at` when that was made, for reads of the past.
-- `gate` is the decision about its promotion (C17) as JSON; NULL while a turn waits for it.
ALTER TABLE units ADD COLUMN covered_by TEXT;
ALTER TABLE units ADD COLUMN covered_at TEXT;
ALTER TABLE units ADD COLUMN gate TEXT;
-- Why it was superseded, when nobody said so but a rule saw it (C19).
ALTER TABLE units ADD COLUMN superseded_why TEXT;

-- Copies of this file that the engine made: an erasure has to reach them too (C19).
CREATE TABLE backups (
    path    TEXT PRIMARY KEY,
    made_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Times in which a unit was superseded, ended by a reinstatement: reads of the past do not see it then (C19).
CREATE TABLE absences (
    unit_key INTEGER NOT NULL,
    by       TEXT NOT NULL,
    since    TEXT NOT NULL,
    until    TEXT NOT NULL
) STRICT;

CREATE INDEX absences_of_unit ON absences (unit_key);

-- What a backup has yet to lose: written with the erasure, gone when the copy has been reached.
CREATE TABLE copies (
    path   TEXT NOT NULL,
    kind   TEXT NOT NULL,   -- unit or document
    tenant TEXT NOT NULL,
    user   TEXT NOT NULL,
    id     TEXT NOT NULL
) STRICT;

CREATE INDEX units_covered ON units (tenant, user, covered_by) WHERE covered_by IS NOT NULL;
