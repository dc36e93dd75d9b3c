-- A change of CPUs is a step of its own as soon as it is in effect.

ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS outcome
        '"applied", "carried_out", "kept", "undone", "refused" or "dry_run"';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS outcome
        'applied (the CPUs have changed), carried_out, kept, undone, refused or, if moves are not turned on, dry_run.';
