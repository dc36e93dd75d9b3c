-- Why CPUs of elastic jobs move, and the loans with which a job was admitted.

ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS rule LowCardinality(String);
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS before_probability Nullable(Float64);
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS after_probability Nullable(Float64);
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS slack_seconds Nullable(Float64);
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS free_cpus UInt32;
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS rejected_cpus Array(UInt32);
ALTER TABLE job_moved ADD COLUMN IF NOT EXISTS rejected_reasons Array(String);
ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS purpose
        '"lent", "returned", "at_risk", "left_over" or "foreign_load"; empty for other moves.',
    COMMENT COLUMN IF EXISTS rule
        'Reason of the policy, such as "share", "left over" or "yield"; empty if it gave none.',
    COMMENT COLUMN IF EXISTS before_probability
        'Predicted probability of meeting the SLO without the move.',
    COMMENT COLUMN IF EXISTS after_probability
        'Predicted probability of meeting the SLO with the move.',
    COMMENT COLUMN IF EXISTS slack_seconds
        'Time to the deadline minus the upper bound of the remaining time before the move.',
    COMMENT COLUMN IF EXISTS free_cpus
        'CPUs that no job and no other work used before the move.',
    COMMENT COLUMN IF EXISTS rejected_cpus
        'Other numbers of CPUs of the request that were turned down.',
    COMMENT COLUMN IF EXISTS rejected_reasons 'Why, for each of rejected_cpus.';

ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS loans.job_id Array(String);
ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS loans.from_cpus Array(UInt32);
ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS loans.to_cpus Array(UInt32);
ALTER TABLE job_submitted
    COMMENT COLUMN IF EXISTS loans.job_id
        'Running jobs that lend CPUs, so that the job may start.',
    COMMENT COLUMN IF EXISTS loans.from_cpus 'CPUs of each of them before the loan.',
    COMMENT COLUMN IF EXISTS loans.to_cpus 'CPUs of each of them during the loan.';

CREATE OR REPLACE VIEW moves AS
SELECT at, job_id, run, cause_sequence, move, outcome, means, purpose, for_job, from_cpus, to_cpus,
    rule, before_probability, after_probability, slack_seconds, free_cpus, rejected_cpus,
    rejected_reasons, predicted_seconds, unmoved_seconds, from_batch_size, to_batch_size, epoch,
    before_epoch_seconds, predicted_epoch_seconds,
    unmoved_epoch_seconds, after_epoch_seconds, epochs_measured, gain_ratio, reason
FROM job_moved;

ALTER TABLE moves MODIFY COMMENT
    'One row for each step of a change of a running job.';
ALTER TABLE moves
    COMMENT COLUMN IF EXISTS at 'Time of the step, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS cause_sequence
        'Sequence of the event that caused the advice to move.',
    COMMENT COLUMN IF EXISTS move 'batch_size or cpus.',
    COMMENT COLUMN IF EXISTS outcome
        'carried_out, kept, undone, refused or, if moves are not turned on, dry_run.',
    COMMENT COLUMN IF EXISTS means
        'control, restart, or for CPUs weight, cap, docker, kubernetes or restart.',
    COMMENT COLUMN IF EXISTS purpose
        'lent, returned, at_risk, left_over or foreign_load; empty for a change of the batch size.',
    COMMENT COLUMN IF EXISTS for_job 'Job that the CPUs are lent to, if it is only one.',
    COMMENT COLUMN IF EXISTS from_cpus 'CPUs before the change; 0 for a change of the batch size.',
    COMMENT COLUMN IF EXISTS to_cpus 'CPUs after the change; 0 for a change of the batch size.',
    COMMENT COLUMN IF EXISTS rule 'Reason of the policy; empty if it gave none.',
    COMMENT COLUMN IF EXISTS before_probability
        'Predicted probability of meeting the SLO without the change.',
    COMMENT COLUMN IF EXISTS after_probability
        'Predicted probability of meeting the SLO with the change.',
    COMMENT COLUMN IF EXISTS slack_seconds
        'Time to the deadline minus the upper bound of the remaining time before the change.',
    COMMENT COLUMN IF EXISTS free_cpus 'CPUs of the node that were free before the change.',
    COMMENT COLUMN IF EXISTS rejected_cpus 'Other numbers of CPUs that were turned down.',
    COMMENT COLUMN IF EXISTS rejected_reasons 'Why, for each of rejected_cpus.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted remaining time with the change.',
    COMMENT COLUMN IF EXISTS unmoved_seconds 'Predicted remaining time without the change.',
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
