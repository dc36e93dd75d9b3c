-- CPUs that a job gives up under the objective cost are not lent.

ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS purpose
        '"lent", "returned", "at_risk", "left_over", "foreign_load" or "saved"; empty for other moves.';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS purpose
        'lent, returned, at_risk, left_over, foreign_load or saved; empty for a change of the batch size.';
