-- The roll-up of node samples to minutes, kept after the samples themselves.

CREATE TABLE node_minute (
    node LowCardinality(String),
    minute DateTime('UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    cpu_ratio AggregateFunction(avg, Nullable(Float64)),
    cpu_ratio_max SimpleAggregateFunction(max, Nullable(Float64)),
    io_wait_ratio AggregateFunction(avg, Nullable(Float64)),
    load_average AggregateFunction(avg, Nullable(Float64))
) ENGINE = AggregatingMergeTree ORDER BY (node, minute)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW node_minute_view TO node_minute AS
SELECT node, toStartOfMinute(at) AS minute, toUInt64(count()) AS samples,
    avgState(cpu_ratio) AS cpu_ratio, max(cpu_ratio) AS cpu_ratio_max,
    avgState(io_wait_ratio) AS io_wait_ratio, avgState(load_average) AS load_average
FROM node_sample GROUP BY node, minute;

-- Views with plain names, for people.

CREATE VIEW node_load AS
SELECT node, minute, sum(samples) AS samples, avgMerge(cpu_ratio) AS cpu_ratio, max(cpu_ratio_max) AS cpu_ratio_max,
    avgMerge(io_wait_ratio) AS io_wait_ratio, avgMerge(load_average) AS load_average
FROM node_minute GROUP BY node, minute;

CREATE VIEW epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes
FROM job_epoch;

CREATE VIEW advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability
FROM job_advice;

CREATE VIEW alternatives AS
SELECT at, job_id, decision, model, slo_seconds, alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.predicted_seconds AS predicted_seconds, alternative.predicted_accuracy AS predicted_accuracy,
    alternative.probability AS probability, alternative.reason AS reason
FROM job_advice ARRAY JOIN alternatives AS alternative;

CREATE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.user AS user, s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds, s.predicted_accuracy AS predicted_accuracy,
    e.outcome AS outcome, e.batch_size AS batch_size, e.cpus AS cpus, e.epochs_done AS epochs_done, e.duration_seconds AS run_seconds,
    e.accuracy AS accuracy, if(e.job_id = '', NULL, dateDiff('nanosecond', s.at, e.at) / 1e9) AS response_seconds,
    if(e.job_id = '' OR s.slo_seconds = 0, NULL, e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS met_slo
FROM job_submitted AS s
LEFT JOIN (SELECT * FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e USING (job_id);
