-- The roll-up of node samples to minutes, which are kept longer than the samples.

CREATE TABLE IF NOT EXISTS node_minute (
    node LowCardinality(String),
    minute DateTime('UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    cpu_ratio AggregateFunction(avg, Nullable(Float64)),
    cpu_ratio_max SimpleAggregateFunction(max, Nullable(Float64)),
    io_wait_ratio AggregateFunction(avg, Nullable(Float64)),
    load_average AggregateFunction(avg, Nullable(Float64))
) ENGINE = AggregatingMergeTree ORDER BY (node, minute)
SETTINGS non_replicated_deduplication_window = 1000;

-- The columns are qualified, because an unqualified cpu_ratio would be the aggregate of that name.
CREATE MATERIALIZED VIEW IF NOT EXISTS node_minute_view TO node_minute AS
SELECT s.node AS node, toStartOfMinute(s.at) AS minute, toUInt64(count()) AS samples,
    avgState(s.cpu_ratio) AS cpu_ratio, max(s.cpu_ratio) AS cpu_ratio_max,
    avgState(s.io_wait_ratio) AS io_wait_ratio, avgState(s.load_average) AS load_average
FROM node_sample AS s GROUP BY node, minute;

-- Views for users.

CREATE VIEW IF NOT EXISTS node_load AS
SELECT m.node AS node, m.minute AS minute, sum(m.samples) AS samples, avgMerge(m.cpu_ratio) AS cpu_ratio,
    max(m.cpu_ratio_max) AS cpu_ratio_max, avgMerge(m.io_wait_ratio) AS io_wait_ratio, avgMerge(m.load_average) AS load_average
FROM node_minute AS m GROUP BY node, minute;

CREATE VIEW IF NOT EXISTS epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes
FROM job_epoch;

CREATE VIEW IF NOT EXISTS advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability
FROM job_advice;

CREATE VIEW IF NOT EXISTS alternatives AS
SELECT at, job_id, decision, model, slo_seconds, alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability, alternative.reason AS reason
FROM job_submitted ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT at, job_id, decision, model, slo_seconds, alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability, alternative.reason AS reason
FROM job_advice ARRAY JOIN alternatives AS alternative;

-- One row per submitted job. An end is valid until the next start, and "lost" only until the job's
-- next event.
CREATE VIEW IF NOT EXISTS jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.user AS user, s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds, s.predicted_accuracy AS predicted_accuracy,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence), e.outcome, p.run > 0, 'running', 'submitted') AS state,
    p.run AS run, p.batch_size AS batch_size, p.cpus AS cpus, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    toBool(state NOT IN ('submitted', 'running')) AS ended,
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
SETTINGS join_use_nulls = 0;
