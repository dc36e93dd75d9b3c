-- The loans with which a queued job was admitted, and a view of all loans.

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.job_id Array(String);
ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.from_cpus Array(UInt32);
ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.to_cpus Array(UInt32);
ALTER TABLE job_advice
    COMMENT COLUMN IF EXISTS loans.job_id
        'Running jobs that lend CPUs, so that the queued job may start.',
    COMMENT COLUMN IF EXISTS loans.from_cpus 'CPUs of each of them before the loan.',
    COMMENT COLUMN IF EXISTS loans.to_cpus 'CPUs of each of them during the loan.';

-- An advice to start may be stored twice, after a restart of the advisor.
CREATE OR REPLACE VIEW loans AS
SELECT at, job_id, was_queued, lender_job_id, from_cpus, to_cpus
FROM (
    SELECT at, job_id, toBool(0) AS was_queued, loans.job_id AS lenders,
        loans.from_cpus AS all_from_cpus, loans.to_cpus AS all_to_cpus
    FROM job_submitted
    WHERE notEmpty(lenders)
    UNION ALL
    SELECT at, job_id, toBool(1) AS was_queued, loans.job_id AS lenders,
        loans.from_cpus AS all_from_cpus, loans.to_cpus AS all_to_cpus
    FROM job_advice
    WHERE action = 'start' AND notEmpty(lenders)
    ORDER BY sequence LIMIT 1 BY job_id
) AS l
ARRAY JOIN lenders AS lender_job_id, all_from_cpus AS from_cpus, all_to_cpus AS to_cpus;

ALTER TABLE loans MODIFY COMMENT
    'One row for each running job that lends CPUs to a job, so that this may start.';
ALTER TABLE loans
    COMMENT COLUMN IF EXISTS at 'Time of the admission, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job that borrows.',
    COMMENT COLUMN IF EXISTS was_queued 'Whether the job had waited in the queue.',
    COMMENT COLUMN IF EXISTS lender_job_id 'Name of the job that lends.',
    COMMENT COLUMN IF EXISTS from_cpus 'CPUs of the lender before the loan.',
    COMMENT COLUMN IF EXISTS to_cpus 'CPUs of the lender during the loan.';
