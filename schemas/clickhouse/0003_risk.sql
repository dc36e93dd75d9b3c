-- Warnings and their end, and the SLO attainment.

CREATE TABLE IF NOT EXISTS job_risk (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    cause_sequence UInt64,
    cleared Bool,
    cause LowCardinality(String),
    probability Float64,
    confidence Float64,
    predicted_seconds Float64,
    left_seconds Float64,
    action LowCardinality(String),
    batch_size UInt32,
    saved_probability Nullable(Float64),
    accuracy_loss Nullable(Float64),
    message String
) ENGINE = MergeTree ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

-- One row per promise whose job ran as advised and ended by itself, with the promised and the
-- measured values. The SLO applies until the end of the last epoch.
CREATE VIEW IF NOT EXISTS promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, s.decision AS decision, s.at AS submitted_at, s.confidence AS confidence,
    s.probability AS probability, s.slo_seconds AS slo_seconds, s.predicted_seconds AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept
FROM job_submitted AS s
INNER JOIN (SELECT * FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id AND e.batch_size = s.batch_size AND e.cpus = s.cpus
LEFT JOIN (SELECT job_id, run, max(epoch) AS epoch, max(at) AS at FROM job_epoch GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
WHERE s.slo_seconds > 0
SETTINGS join_use_nulls = 0;
