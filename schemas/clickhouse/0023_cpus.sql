-- Moves of CPUs between elastic jobs.

ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS from_cpus UInt32;
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS to_cpus UInt32;
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS purpose LowCardinality(String);
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS for_job String;
ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS from_cpus 'CPUs before a move of CPUs; 0 for other moves.',
    COMMENT COLUMN IF EXISTS to_cpus 'Advised CPUs; 0 for other moves.',
    COMMENT COLUMN IF EXISTS purpose
        '"lent", "returned", "at_risk" or "left_over"; empty for other moves.',
    COMMENT COLUMN IF EXISTS for_job
        'Job that the CPUs are lent to; empty if there is none or if there are several.',
    COMMENT COLUMN IF EXISTS move '"batch_size" or "cpus"',
    COMMENT COLUMN IF EXISTS outcome '"carried_out", "kept", "undone", "refused" or "dry_run"',
    COMMENT COLUMN IF EXISTS means
        '"control", "restart", "weight", "cap", "docker" or "kubernetes"',
    COMMENT COLUMN IF EXISTS after_epoch_seconds
        'Measured mean time of the first epochs with the move; in a dry run, after the advice.';

CREATE OR REPLACE VIEW moves AS
SELECT at, job_id, run, move, outcome, means, purpose, for_job, from_cpus, to_cpus,
    from_batch_size, to_batch_size, epoch, before_epoch_seconds, predicted_epoch_seconds,
    unmoved_epoch_seconds, after_epoch_seconds, epochs_measured, gain_ratio, reason
FROM job_moved;

ALTER TABLE moves MODIFY COMMENT
    'One row for each step of a change of a running job.';
ALTER TABLE moves
    COMMENT COLUMN IF EXISTS at 'Time of the step, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS move 'batch_size or cpus.',
    COMMENT COLUMN IF EXISTS outcome
        'carried_out, kept, undone, refused or, if moves are not turned on, dry_run.',
    COMMENT COLUMN IF EXISTS means
        'control, restart, or for CPUs weight, cap, docker, kubernetes or restart.',
    COMMENT COLUMN IF EXISTS purpose
        'lent, returned, at_risk or left_over; empty for a change of the batch size.',
    COMMENT COLUMN IF EXISTS for_job 'Job that the CPUs are lent to, if it is only one.',
    COMMENT COLUMN IF EXISTS from_cpus 'CPUs before the change; 0 for a change of the batch size.',
    COMMENT COLUMN IF EXISTS to_cpus 'CPUs after the change; 0 for a change of the batch size.',
    COMMENT COLUMN IF EXISTS from_batch_size 'Batch size before the change.',
    COMMENT COLUMN IF EXISTS to_batch_size 'Batch size after the change.',
    COMMENT COLUMN IF EXISTS epoch 'First epoch with the change; 0 if there is none.',
    COMMENT COLUMN IF EXISTS before_epoch_seconds 'Measured epoch time before the change.',
    COMMENT COLUMN IF EXISTS predicted_epoch_seconds 'Predicted epoch time with the change.',
    COMMENT COLUMN IF EXISTS unmoved_epoch_seconds 'Predicted epoch time without the change.',
    COMMENT COLUMN IF EXISTS after_epoch_seconds
        'Measured epoch time after the change; in a dry run, after the advice.',
    COMMENT COLUMN IF EXISTS epochs_measured 'Epochs that were measured after the change.',
    COMMENT COLUMN IF EXISTS gain_ratio 'Measured gain / predicted gain.',
    COMMENT COLUMN IF EXISTS reason 'Reason why the change was refused or undone.';
