-- Moves of running jobs: the advised change and its measured effect.

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS moves Array(LowCardinality(String));

CREATE TABLE IF NOT EXISTS job_moved (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    cause_sequence UInt64,
    move LowCardinality(String),
    outcome LowCardinality(String),
    means LowCardinality(String),
    from_batch_size UInt32,
    to_batch_size UInt32,
    epoch UInt32,
    predicted_seconds Nullable(Float64),
    unmoved_seconds Nullable(Float64),
    predicted_epoch_seconds Nullable(Float64),
    unmoved_epoch_seconds Nullable(Float64),
    before_epoch_seconds Nullable(Float64),
    after_epoch_seconds Nullable(Float64),
    epochs_measured UInt32,
    gain_ratio Nullable(Float64),
    reason String
) ENGINE = MergeTree ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

-- A promise is the answer to a request, or the advice that ended the job's queueing time. One row
-- per promise whose job started as advised and ended by itself, with the promised and the measured
-- values. A job that Courier moved to another batch size keeps its promise. The SLO applies from
-- the request to the end of the last epoch.
CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at, s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept
FROM job_submitted AS s
LEFT JOIN (SELECT * FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
INNER JOIN (SELECT * FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch) AS epoch, max(at) AS at FROM job_epoch GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
LEFT JOIN (SELECT job_id, run, argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out' GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size, s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;
