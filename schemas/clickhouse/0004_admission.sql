-- The verdict of the admission policy.

ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS verdict LowCardinality(String);

-- One row per submitted job. An end is valid until the next start, and "lost" only until the job's
-- next event.
CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.user AS user, s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds, s.predicted_accuracy AS predicted_accuracy,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence), e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued', 'submitted') AS state,
    p.run AS run, p.batch_size AS batch_size, p.cpus AS cpus, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    if(ended AND s.slo_seconds > 0, toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, argMax(l.batch_size, l.sequence) AS batch_size,
        argMax(l.cpus, l.sequence) AS cpus, argMax(l.epoch, l.sequence) AS epochs_done, argMax(l.accuracy, l.sequence) AS accuracy
    FROM (
        SELECT job_id, run, sequence, batch_size, cpus, 0 AS epoch, NULL AS accuracy FROM job_started
        UNION ALL
        SELECT job_id, run, sequence, batch_size, cpus, epoch, accuracy FROM job_epoch
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT * FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT * FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
SETTINGS join_use_nulls = 0;
