CREATE DATABASE IF NOT EXISTS courier_v1;

USE courier_v1;

CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32,
    name String,
    applied_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree ORDER BY number;

CREATE TABLE IF NOT EXISTS job_submitted (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    model LowCardinality(String),
    dataset LowCardinality(String),
    parameters UInt64,
    layers UInt32,
    training_samples UInt64,
    request_cpus Array(UInt32),
    request_batch_sizes Array(UInt32),
    epochs UInt32,
    slo_seconds Float64,
    confidence Float64,
    nodes Array(LowCardinality(String)),
    user LowCardinality(String),
    labels Map(String, String),
    decision LowCardinality(String),
    batch_size UInt32,
    cpus UInt32,
    predicted_seconds Nullable(Float64),
    predicted_accuracy Nullable(Float64),
    probability Nullable(Float64),
    alternatives Nested (
        batch_size UInt32,
        cpus UInt32,
        epochs UInt32,
        predicted_seconds Nullable(Float64),
        predicted_accuracy Nullable(Float64),
        probability Nullable(Float64),
        reason LowCardinality(String)
    )
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS job_started (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    model LowCardinality(String),
    batch_size UInt32,
    cpus UInt32,
    epochs UInt32,
    training_samples UInt64,
    nodes Array(LowCardinality(String)),
    node_cores UInt32,
    heartbeat_seconds Float64,
    command LowCardinality(String),
    user LowCardinality(String)
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, run, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS job_epoch (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    model LowCardinality(String),
    batch_size UInt32,
    cpus UInt32,
    epochs UInt32,
    training_samples UInt64,
    nodes Array(LowCardinality(String)),
    epoch UInt32,
    duration_seconds Float64,
    duration_source LowCardinality(String),
    node_cores UInt32,
    loss Nullable(Float64),
    accuracy Nullable(Float64),
    concurrent_jobs Nullable(Float64),
    node_cpu_ratio Nullable(Float64),
    node_io_wait_ratio Nullable(Float64),
    node_load_average Nullable(Float64),
    job_cpu_seconds Nullable(Float64),
    job_memory_bytes Nullable(Float64),
    job_read_bytes Nullable(Float64),
    job_written_bytes Nullable(Float64)
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, run, epoch)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS job_ended (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    outcome LowCardinality(String),
    reason String,
    exit_code Nullable(Int32),
    duration_seconds Float64,
    startup_seconds Nullable(Float64),
    epochs_done UInt32,
    accuracy Nullable(Float64),
    model LowCardinality(String),
    batch_size UInt32,
    cpus UInt32,
    epochs UInt32,
    training_samples UInt64,
    nodes Array(LowCardinality(String))
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, run, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS job_advice (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    cause_sequence UInt64,
    decision LowCardinality(String),
    action LowCardinality(String),
    message String,
    model LowCardinality(String),
    nodes Array(LowCardinality(String)),
    slo_seconds Float64,
    elapsed_seconds Float64,
    confidence Float64,
    epochs_done UInt32,
    concurrent_jobs Float64,
    processes Float64,
    batch_size UInt32,
    cpus UInt32,
    epochs UInt32,
    predicted_seconds Nullable(Float64),
    upper_bound_seconds Nullable(Float64),
    predicted_accuracy Nullable(Float64),
    probability Nullable(Float64),
    regressors Map(String, String),
    alternatives Nested (
        batch_size UInt32,
        cpus UInt32,
        epochs UInt32,
        predicted_seconds Nullable(Float64),
        predicted_accuracy Nullable(Float64),
        probability Nullable(Float64),
        reason LowCardinality(String)
    )
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS node_sample (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    node LowCardinality(String),
    boot_id LowCardinality(String),
    number UInt64,
    interval_seconds Float64,
    cores UInt32,
    cpu_ratio Nullable(Float64),
    io_wait_ratio Nullable(Float64),
    cpu_pressure_ratio Nullable(Float64),
    io_pressure_ratio Nullable(Float64),
    memory_pressure_ratio Nullable(Float64),
    load_average Nullable(Float64),
    memory_total_bytes Nullable(Float64),
    memory_available_bytes Nullable(Float64),
    disk_read_bytes_per_second Nullable(Float64),
    disk_written_bytes_per_second Nullable(Float64),
    disk_busy_ratio Nullable(Float64),
    network_received_bytes_per_second Nullable(Float64),
    network_transmitted_bytes_per_second Nullable(Float64)
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') PARTITION BY toYYYYMM(at) ORDER BY (node, at)
TTL toDateTime(at) + INTERVAL 90 DAY
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS regressor_promoted (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    revision UInt64,
    model_digest String,
    manifest_digest String,
    family LowCardinality(String),
    examples UInt64,
    settings UInt64,
    mean_squared_error Float64,
    median_absolute_ratio Float64,
    r2 Nullable(Float64),
    fit_seconds Float64,
    reason String
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (target, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS regressor_rejected (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    model_digest String,
    reason String
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (target, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE TABLE IF NOT EXISTS log_position (
    stream LowCardinality(String),
    sequence UInt64,
    inserted_at DateTime64(9, 'UTC')
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', sequence) ORDER BY stream;

INSERT INTO schema_migrations SELECT 1, '0001_log.sql', now64(9, 'UTC');

CREATE TABLE IF NOT EXISTS node_minute (
    node LowCardinality(String),
    minute DateTime('UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    cpu_ratio AggregateFunction(avg, Nullable(Float64)),
    cpu_ratio_max SimpleAggregateFunction(max, Nullable(Float64)),
    io_wait_ratio AggregateFunction(avg, Nullable(Float64)),
    load_average AggregateFunction(avg, Nullable(Float64))
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (node, minute)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

CREATE MATERIALIZED VIEW IF NOT EXISTS node_minute_view TO node_minute AS
SELECT s.node AS node, toStartOfMinute(s.at) AS minute, toUInt64(count()) AS samples,
    avgState(s.cpu_ratio) AS cpu_ratio, max(s.cpu_ratio) AS cpu_ratio_max,
    avgState(s.io_wait_ratio) AS io_wait_ratio, avgState(s.load_average) AS load_average
FROM node_sample AS s GROUP BY node, minute;

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

INSERT INTO schema_migrations SELECT 2, '0002_views.sql', now64(9, 'UTC');

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
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

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

INSERT INTO schema_migrations SELECT 3, '0003_risk.sql', now64(9, 'UTC');

ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS verdict LowCardinality(String);

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

INSERT INTO schema_migrations SELECT 4, '0004_admission.sql', now64(9, 'UTC');

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
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

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

INSERT INTO schema_migrations SELECT 5, '0005_moves.sql', now64(9, 'UTC');

CREATE TABLE IF NOT EXISTS regressor_drift (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    cause_sequence UInt64,
    model_digest String,
    scope LowCardinality(String),
    node LowCardinality(String),
    model LowCardinality(String),
    since_at DateTime64(9, 'UTC'),
    ratio Float64,
    before_ratio Float64,
    jobs UInt32,
    rest_ratio Nullable(Float64),
    rest_jobs UInt32,
    explained_ratio Float64,
    detector LowCardinality(String),
    statistic Float64,
    threshold Float64,
    deviation Float64,
    window_jobs UInt32,
    window_since_at DateTime64(9, 'UTC'),
    known_changes Array(String),
    message String
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (target, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

INSERT INTO schema_migrations SELECT 6, '0006_drift.sql', now64(9, 'UTC');

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS validation_samples UInt64;

INSERT INTO schema_migrations SELECT 7, '0007_validation.sql', now64(9, 'UTC');

CREATE TABLE IF NOT EXISTS regressor_trained (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    model_digest String,
    manifest_digest String,
    family LowCardinality(String),
    examples UInt64,
    settings UInt64,
    mean_squared_error Float64,
    median_absolute_ratio Float64,
    r2 Nullable(Float64),
    fit_seconds Float64,
    reason String,
    rival String,
    since_sequence UInt64
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (target, at)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS decided_by LowCardinality(String);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS rival String;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS since_sequence UInt64;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS judged_level Float64;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS judged_jobs UInt32;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS judged_settings UInt32;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS loss Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS rival_loss Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS loss_difference_low Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS loss_difference_high Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS coverage_ratio Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS rival_coverage_ratio Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS gained_settings UInt32;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS lost_settings UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS rival String;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS judged_level Float64;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS judged_jobs UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS judged_settings UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS loss Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS rival_loss Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS loss_difference_low Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS loss_difference_high Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS coverage_ratio Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS rival_coverage_ratio Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS gained_settings UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS lost_settings UInt32;

INSERT INTO schema_migrations SELECT 8, '0008_judged.sql', now64(9, 'UTC');

CREATE VIEW IF NOT EXISTS regressor_life AS
SELECT at, target, 'trained' AS kind, model_digest, family, toNullable(examples) AS examples, toNullable(settings) AS settings,
    toNullable(median_absolute_ratio) AS median_absolute_ratio, r2, toNullable(fit_seconds) AS fit_seconds, '' AS decided_by, reason, rival,
    NULL::Nullable(UInt32) AS judged_jobs, NULL::Nullable(UInt32) AS judged_settings, NULL::Nullable(Float64) AS judged_level,
    NULL::Nullable(Float64) AS loss, NULL::Nullable(Float64) AS rival_loss, NULL::Nullable(Float64) AS loss_difference_low, NULL::Nullable(Float64) AS loss_difference_high,
    NULL::Nullable(Float64) AS coverage_ratio, NULL::Nullable(Float64) AS rival_coverage_ratio, NULL::Nullable(Float64) AS drift_ratio, '' AS drifted, event_id, sequence
FROM regressor_trained
UNION ALL
SELECT at, target, 'promoted', model_digest, family, toNullable(examples), toNullable(settings),
    toNullable(median_absolute_ratio), r2, toNullable(fit_seconds), decided_by, reason, rival,
    nullIf(judged_jobs, 0), nullIf(judged_settings, 0), nullIf(judged_level, 0),
    loss, rival_loss, loss_difference_low, loss_difference_high,
    coverage_ratio, rival_coverage_ratio, NULL, '', event_id, sequence
FROM regressor_promoted
UNION ALL
SELECT e.at, e.target, 'rejected', e.model_digest, ifNull(f.family, ''), if(f.event_id = '', NULL, f.examples), if(f.event_id = '', NULL, f.settings),
    if(f.event_id = '', NULL, f.median_absolute_ratio), f.r2, if(f.event_id = '', NULL, f.fit_seconds), '', e.reason, e.rival,
    nullIf(e.judged_jobs, 0), nullIf(e.judged_settings, 0), nullIf(e.judged_level, 0),
    e.loss, e.rival_loss, e.loss_difference_low, e.loss_difference_high,
    e.coverage_ratio, e.rival_coverage_ratio, NULL, '', e.event_id, e.sequence
FROM regressor_rejected AS e
LEFT JOIN (SELECT * FROM regressor_trained ORDER BY sequence DESC LIMIT 1 BY target, model_digest) AS f ON f.target = e.target AND f.model_digest = e.model_digest
SETTINGS join_use_nulls = 0
UNION ALL
SELECT at, target, 'drift', model_digest, '', NULL, NULL,
    NULL, NULL, NULL, '', message, '',
    NULL, NULL, NULL,
    NULL, NULL, NULL, NULL,
    NULL, NULL, toNullable(ratio), multiIf(scope = 'node', node, scope = 'model', model, 'all'), event_id, sequence
FROM regressor_drift;

INSERT INTO schema_migrations SELECT 9, '0009_regressor_life.sql', now64(9, 'UTC');

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS cpu_model LowCardinality(String);

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS speed_operations_per_second Nullable(Float64);

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_cores Array(UInt32);

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_cpu_model Array(LowCardinality(String));

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_speed_operations_per_second Array(Float64);

INSERT INTO schema_migrations SELECT 10, '0010_nodes.sql', now64(9, 'UTC');

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS coverage_ratio Nullable(Float64);

INSERT INTO schema_migrations SELECT 11, '0011_coverage.sql', now64(9, 'UTC');

ALTER TABLE node_minute ADD COLUMN IF NOT EXISTS cores SimpleAggregateFunction(max, UInt32);

ALTER TABLE node_minute MODIFY TTL minute + INTERVAL 400 DAY;

CREATE TABLE IF NOT EXISTS node_hour (
    node LowCardinality(String),
    hour DateTime('UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    cpu_ratio AggregateFunction(avg, Nullable(Float64)),
    cpu_ratio_max SimpleAggregateFunction(max, Nullable(Float64)),
    io_wait_ratio AggregateFunction(avg, Nullable(Float64)),
    load_average AggregateFunction(avg, Nullable(Float64)),
    cores SimpleAggregateFunction(max, UInt32)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (node, hour)
TTL hour + INTERVAL 5 YEAR
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

INSERT INTO node_hour SETTINGS insert_deduplication_token = '0012/node_hour', max_threads = 1
SELECT m.node AS node, toStartOfHour(m.minute) AS hour, sum(m.samples) AS samples,
    avgMergeState(m.cpu_ratio) AS cpu_ratio, max(m.cpu_ratio_max) AS cpu_ratio_max,
    avgMergeState(m.io_wait_ratio) AS io_wait_ratio, avgMergeState(m.load_average) AS load_average, max(m.cores) AS cores
FROM node_minute AS m GROUP BY node, hour ORDER BY node, hour;

CREATE MATERIALIZED VIEW IF NOT EXISTS node_hour_view TO node_hour AS
SELECT m.node AS node, toStartOfHour(m.minute) AS hour, sum(m.samples) AS samples,
    avgMergeState(m.cpu_ratio) AS cpu_ratio, max(m.cpu_ratio_max) AS cpu_ratio_max,
    avgMergeState(m.io_wait_ratio) AS io_wait_ratio, avgMergeState(m.load_average) AS load_average, max(m.cores) AS cores
FROM node_minute AS m GROUP BY node, hour;

ALTER TABLE node_minute_view MODIFY QUERY
SELECT s.node AS node, toStartOfMinute(s.at) AS minute, toUInt64(count()) AS samples,
    avgState(s.cpu_ratio) AS cpu_ratio, max(s.cpu_ratio) AS cpu_ratio_max,
    avgState(s.io_wait_ratio) AS io_wait_ratio, avgState(s.load_average) AS load_average, max(s.cores) AS cores
FROM node_sample AS s GROUP BY node, minute;

CREATE TABLE IF NOT EXISTS job_run (
    job_id String,
    run UInt32,
    sequence SimpleAggregateFunction(max, UInt64),
    last_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')),
    epochs SimpleAggregateFunction(sum, UInt64),
    epoch_max SimpleAggregateFunction(max, UInt32),
    epoch AggregateFunction(argMax, UInt32, UInt64),
    batch_size AggregateFunction(argMax, UInt32, UInt64),
    cpus AggregateFunction(argMax, UInt32, UInt64),
    accuracy AggregateFunction(argMax, Nullable(Float64), UInt64),
    epoch_seconds SimpleAggregateFunction(sum, Float64),
    io_wait_seconds SimpleAggregateFunction(sum, Float64),
    io_wait_of_seconds SimpleAggregateFunction(sum, Float64),
    concurrent_job_seconds SimpleAggregateFunction(sum, Float64),
    concurrent_of_seconds SimpleAggregateFunction(sum, Float64),
    job_cpu_seconds SimpleAggregateFunction(sum, Nullable(Float64)),
    job_memory_bytes SimpleAggregateFunction(max, Nullable(Float64))
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}') ORDER BY (job_id, run)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800;

INSERT INTO job_run SETTINGS insert_deduplication_token = '0012/job_run', max_threads = 1
SELECT e.job_id AS job_id, e.run AS run, max(e.sequence) AS sequence, max(e.at) AS last_at, toUInt64(count()) AS epochs, max(e.epoch) AS epoch_max,
    argMaxState(e.epoch, e.sequence) AS epoch, argMaxState(e.batch_size, e.sequence) AS batch_size, argMaxState(e.cpus, e.sequence) AS cpus,
    argMaxState(e.accuracy, e.sequence) AS accuracy, sum(e.duration_seconds) AS epoch_seconds,
    sum(ifNull(e.node_io_wait_ratio, 0) * e.duration_seconds) AS io_wait_seconds, sumIf(e.duration_seconds, e.node_io_wait_ratio IS NOT NULL) AS io_wait_of_seconds,
    sum(ifNull(e.concurrent_jobs, 0) * e.duration_seconds) AS concurrent_job_seconds, sumIf(e.duration_seconds, e.concurrent_jobs IS NOT NULL) AS concurrent_of_seconds,
    sum(e.job_cpu_seconds) AS job_cpu_seconds, max(e.job_memory_bytes) AS job_memory_bytes
FROM job_epoch AS e GROUP BY job_id, run ORDER BY job_id, run;

CREATE MATERIALIZED VIEW IF NOT EXISTS job_run_view TO job_run AS
SELECT e.job_id AS job_id, e.run AS run, max(e.sequence) AS sequence, max(e.at) AS last_at, toUInt64(count()) AS epochs, max(e.epoch) AS epoch_max,
    argMaxState(e.epoch, e.sequence) AS epoch, argMaxState(e.batch_size, e.sequence) AS batch_size, argMaxState(e.cpus, e.sequence) AS cpus,
    argMaxState(e.accuracy, e.sequence) AS accuracy, sum(e.duration_seconds) AS epoch_seconds,
    sum(ifNull(e.node_io_wait_ratio, 0) * e.duration_seconds) AS io_wait_seconds, sumIf(e.duration_seconds, e.node_io_wait_ratio IS NOT NULL) AS io_wait_of_seconds,
    sum(ifNull(e.concurrent_jobs, 0) * e.duration_seconds) AS concurrent_job_seconds, sumIf(e.duration_seconds, e.concurrent_jobs IS NOT NULL) AS concurrent_of_seconds,
    sum(e.job_cpu_seconds) AS job_cpu_seconds, max(e.job_memory_bytes) AS job_memory_bytes
FROM job_epoch AS e GROUP BY job_id, run;

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.user AS user, s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence, s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds, s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence), e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued', 'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes), CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus, s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at, if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9, NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    if(ended AND s.slo_seconds > 0, toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1, NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at, min(l.started_at) AS first_started_at, argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus, argMax(l.epoch, (l.run, l.sequence)) AS epochs_done, argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds, sum(l.io_wait_seconds) AS io_wait_seconds, sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds, sum(l.concurrent_of_seconds) AS concurrent_of_seconds, sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at, arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch, NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds, 0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '', argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch), argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds), sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at, argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at, s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, elapsed_seconds, predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus, nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch, max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
LEFT JOIN (SELECT job_id, run, argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out' GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size, s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes, job_written_bytes, training_samples, node_cores
FROM job_epoch;

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability, confidence, nodes, regressors
FROM job_advice;

CREATE OR REPLACE VIEW alternatives AS
SELECT at, job_id, 'request' AS origin, decision, model, slo_seconds, alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability, alternative.reason AS reason,
    s.batch_size AS chosen_batch_size, s.predicted_accuracy AS chosen_accuracy
FROM job_submitted AS s ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT at, job_id, 'advice', decision, model, slo_seconds, alternative.batch_size, alternative.cpus,
    alternative.epochs, alternative.predicted_seconds,
    alternative.predicted_accuracy, alternative.probability, alternative.reason,
    a.batch_size, a.predicted_accuracy
FROM job_advice AS a ARRAY JOIN alternatives AS alternative;

CREATE VIEW IF NOT EXISTS warnings AS
SELECT at, job_id, run, cleared, cause, probability, confidence, predicted_seconds, left_seconds, action, batch_size, saved_probability, accuracy_loss, message
FROM job_risk;

CREATE VIEW IF NOT EXISTS moves AS
SELECT at, job_id, run, move, outcome, means, from_batch_size, to_batch_size, epoch, before_epoch_seconds, predicted_epoch_seconds, unmoved_epoch_seconds, after_epoch_seconds,
    epochs_measured, gain_ratio, reason
FROM job_moved;

CREATE VIEW IF NOT EXISTS drifts AS
SELECT at, target, model_digest, scope, multiIf(scope = 'node', node, scope = 'model', model, 'all') AS drifted, since_at, ratio, before_ratio, jobs, rest_ratio, rest_jobs,
    coverage_ratio, known_changes, message
FROM regressor_drift;

CREATE OR REPLACE VIEW node_load AS
SELECT m.node AS node, m.minute AS minute, sum(m.samples) AS samples, avgMerge(m.cpu_ratio) AS cpu_ratio,
    max(m.cpu_ratio_max) AS cpu_ratio_max, avgMerge(m.io_wait_ratio) AS io_wait_ratio, avgMerge(m.load_average) AS load_average, nullIf(max(m.cores), 0) AS cores
FROM node_minute AS m GROUP BY node, minute;

CREATE VIEW IF NOT EXISTS node_load_hourly AS
SELECT h.node AS node, h.hour AS hour, sum(h.samples) AS samples, avgMerge(h.cpu_ratio) AS cpu_ratio,
    max(h.cpu_ratio_max) AS cpu_ratio_max, avgMerge(h.io_wait_ratio) AS io_wait_ratio, avgMerge(h.load_average) AS load_average, nullIf(max(h.cores), 0) AS cores
FROM node_hour AS h GROUP BY node, hour;

CREATE VIEW IF NOT EXISTS regressors AS
SELECT l.target AS target, l.model_digest AS model_digest,
    multiIf(l.model_digest = c.model_digest, 'in_use', countIf(l.kind = 'promoted') > 0, 'former', countIf(l.kind = 'rejected') > 0, 'rejected', 'challenger') AS state,
    argMaxIf(l.family, l.sequence, l.family != '') AS family, if(countIf(l.kind IN ('trained', 'promoted')) > 0, minIf(l.at, l.kind IN ('trained', 'promoted')), NULL) AS trained_at,
    if(countIf(l.kind = 'promoted') > 0, maxIf(l.at, l.kind = 'promoted'), NULL) AS promoted_at, countIf(l.kind = 'promoted') AS promotions,
    argMax(l.examples, l.sequence) AS examples, argMax(l.settings, l.sequence) AS settings, argMax(l.median_absolute_ratio, l.sequence) AS median_absolute_ratio,
    argMax(l.coverage_ratio, l.sequence) AS coverage_ratio, argMax(l.judged_jobs, l.sequence) AS judged_jobs,
    countIf(l.kind = 'drift') AS drifts, argMaxIf(l.decided_by, l.sequence, l.decided_by != '') AS decided_by, argMaxIf(l.reason, l.sequence, l.kind != 'drift') AS reason
FROM regressor_life AS l
LEFT JOIN (SELECT target, argMax(model_digest, sequence) AS model_digest FROM regressor_promoted GROUP BY target) AS c ON c.target = l.target
GROUP BY l.target, l.model_digest, c.model_digest HAVING countIf(l.kind != 'drift') > 0
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT 'One line for each submitted job';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'its name',
    COMMENT COLUMN IF EXISTS model 'what is trained',
    COMMENT COLUMN IF EXISTS user 'who submitted it',
    COMMENT COLUMN IF EXISTS submitted_at 'UTC; the SLO counts from here',
    COMMENT COLUMN IF EXISTS slo_seconds '0: it has none',
    COMMENT COLUMN IF EXISTS confidence 'of keeping the SLO, as asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted',
    COMMENT COLUMN IF EXISTS advised_batch_size '0: none was advised',
    COMMENT COLUMN IF EXISTS predicted_seconds 'start-up and all epochs, as answered',
    COMMENT COLUMN IF EXISTS predicted_accuracy '0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as answered, 0 to 1',
    COMMENT COLUMN IF EXISTS state 'submitted, queued, refused, running, finished, failed, cancelled or lost',
    COMMENT COLUMN IF EXISTS run 'how often it was started',
    COMMENT COLUMN IF EXISTS nodes 'where it runs, or was advised to',
    COMMENT COLUMN IF EXISTS batch_size 'with which it trains, or trained last; 0: it never started',
    COMMENT COLUMN IF EXISTS cpus 'processes',
    COMMENT COLUMN IF EXISTS epochs 'asked for; 0: chosen by Courier',
    COMMENT COLUMN IF EXISTS epochs_done 'in its last run',
    COMMENT COLUMN IF EXISTS accuracy 'last one told, 0 to 1',
    COMMENT COLUMN IF EXISTS started_at 'first start; NULL: never',
    COMMENT COLUMN IF EXISTS waited_seconds 'from the request to the first start',
    COMMENT COLUMN IF EXISTS ended 'nothing more is expected of it',
    COMMENT COLUMN IF EXISTS ended_at 'NULL: it has not',
    COMMENT COLUMN IF EXISTS end_reason 'why it ended, in words',
    COMMENT COLUMN IF EXISTS last_event_at 'last sign of it in the log',
    COMMENT COLUMN IF EXISTS run_seconds 'of its last run',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end',
    COMMENT COLUMN IF EXISTS met_slo 'finished within the SLO; NULL: no SLO, or not ended',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'mean duration of its epochs',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'share of its nodes\' processors that waited for disks during its epochs, weighted by duration',
    COMMENT COLUMN IF EXISTS neighbours 'mean number of other jobs beside it during its epochs',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of its processes in its epochs',
    COMMENT COLUMN IF EXISTS memory_bytes 'largest resident memory at an epoch\'s end',
    COMMENT COLUMN IF EXISTS warned_at 'first warning that the SLO is at risk; NULL: none',
    COMMENT COLUMN IF EXISTS warned_cause 'cause of the last warning: slow_epochs, io_wait, neighbours, late_start or regressor';

ALTER TABLE promises MODIFY COMMENT 'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting';

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio 'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node';

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus',
    COMMENT COLUMN IF EXISTS message 'the advice in a sentence',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'since the request',
    COMMENT COLUMN IF EXISTS epochs_done 'so far',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'assumed',
    COMMENT COLUMN IF EXISTS batch_size 'to run',
    COMMENT COLUMN IF EXISTS epochs 'that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that remain',
    COMMENT COLUMN IF EXISTS upper_bound_seconds 'that remain, with the confidence asked for',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so';

ALTER TABLE alternatives MODIFY COMMENT 'One line for each alternative of each answer and advice';

ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS origin 'request: of the answer to a request; advice: while it waited or ran',
    COMMENT COLUMN IF EXISTS epochs 'or those that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'NULL: not known',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS reason 'why it was chosen or lost',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'predicted, of the one that was chosen';

ALTER TABLE warnings MODIFY COMMENT 'One line for each warning that an SLO is at risk, and each all-clear';

ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS cleared 'all clear',
    COMMENT COLUMN IF EXISTS cause 'slow_epochs, io_wait, neighbours, late_start or regressor',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO as it runs',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that it still takes',
    COMMENT COLUMN IF EXISTS left_seconds 'that the SLO leaves; negative: it is over',
    COMMENT COLUMN IF EXISTS action 'what saves it',
    COMMENT COLUMN IF EXISTS saved_probability 'of keeping the SLO then',
    COMMENT COLUMN IF EXISTS accuracy_loss 'what that costs; negative is a gain';

ALTER TABLE moves MODIFY COMMENT 'One line for each step of a move of a running job';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS outcome 'carried_out, kept, undone or refused',
    COMMENT COLUMN IF EXISTS means 'control: between epochs; restart: started again',
    COMMENT COLUMN IF EXISTS epoch 'the first with the new batch size; 0: none',
    COMMENT COLUMN IF EXISTS before_epoch_seconds 'measured before',
    COMMENT COLUMN IF EXISTS predicted_epoch_seconds 'with the move',
    COMMENT COLUMN IF EXISTS unmoved_epoch_seconds 'predicted without it',
    COMMENT COLUMN IF EXISTS after_epoch_seconds 'measured after',
    COMMENT COLUMN IF EXISTS gain_ratio 'measured gain / predicted gain',
    COMMENT COLUMN IF EXISTS reason 'why it was refused or undone';

ALTER TABLE drifts MODIFY COMMENT 'One line for each alarm that jobs no longer are as predicted';

ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS scope 'all, node or model',
    COMMENT COLUMN IF EXISTS drifted 'the node or model, or all',
    COMMENT COLUMN IF EXISTS since_at 'begin of the first job that shows it',
    COMMENT COLUMN IF EXISTS ratio 'measured / predicted since then',
    COMMENT COLUMN IF EXISTS before_ratio 'what that was before',
    COMMENT COLUMN IF EXISTS jobs 'of what drifted, since then',
    COMMENT COLUMN IF EXISTS rest_ratio 'measured / predicted of all other jobs',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of epochs within the bound since then',
    COMMENT COLUMN IF EXISTS known_changes 'what else changed then';

ALTER TABLE node_load MODIFY COMMENT 'One line for each node and minute, kept for 400 days';

ALTER TABLE node_load
    COMMENT COLUMN IF EXISTS minute 'its begin, UTC',
    COMMENT COLUMN IF EXISTS samples 'that came',
    COMMENT COLUMN IF EXISTS cpu_ratio 'mean busy share of the processors, 0 to 1',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'busiest sample',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'mean share of the processors that waited for disks',
    COMMENT COLUMN IF EXISTS load_average 'mean',
    COMMENT COLUMN IF EXISTS cores 'logical processors; NULL: not told';

ALTER TABLE node_load_hourly MODIFY COMMENT 'One line for each node and hour, kept for five years';

ALTER TABLE node_load_hourly
    COMMENT COLUMN IF EXISTS hour 'its begin, UTC',
    COMMENT COLUMN IF EXISTS samples 'that came',
    COMMENT COLUMN IF EXISTS cpu_ratio 'mean busy share of the processors, 0 to 1',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'busiest sample',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'mean share of the processors that waited for disks',
    COMMENT COLUMN IF EXISTS load_average 'mean',
    COMMENT COLUMN IF EXISTS cores 'logical processors; NULL: not told';

ALTER TABLE regressors MODIFY COMMENT 'One line for each regressor that was fitted for a target';

ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'epoch_time, startup_time or accuracy',
    COMMENT COLUMN IF EXISTS model_digest 'sha256; what courier regressor show takes',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger',
    COMMENT COLUMN IF EXISTS trained_at 'NULL: nobody told',
    COMMENT COLUMN IF EXISTS promoted_at 'last time that it was put in use',
    COMMENT COLUMN IF EXISTS promotions 'how often',
    COMMENT COLUMN IF EXISTS examples 'it was fitted on',
    COMMENT COLUMN IF EXISTS settings 'distinct ones among them',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS drifts 'alarms while it was in use',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS reason 'of what was last decided';

ALTER TABLE regressor_life MODIFY COMMENT 'One line for each event of a regressor';

ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected or drift',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS rival 'digest of what it was judged against',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS loss 'pinball loss on those jobs',
    COMMENT COLUMN IF EXISTS rival_loss 'of its rival on the same',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS drift_ratio 'measured / predicted',
    COMMENT COLUMN IF EXISTS drifted 'the node or model, or all';

INSERT INTO schema_migrations SELECT 12, '0012_people.sql', now64(9, 'UTC');

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_wait_seconds Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cpu_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cpu_full_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_full_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_memory_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_memory_full_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cgroup_figures Array(LowCardinality(String));

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS io_full_pressure_ratio Nullable(Float64);

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS memory_full_pressure_ratio Nullable(Float64);

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes, job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio, job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio 'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds 'that its threads waited for storage, summed; NULL: the kernel does not tell',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio 'share of the time in which some task of the job waited for a CPU',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio 'in which some task of the job waited for storage',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio 'in which all of them that had work waited for storage',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio 'in which some task of the job waited for memory',
    COMMENT COLUMN IF EXISTS job_cgroup_figures 'which of cpu, memory and io its cgroup told; the others are of its process tree';

INSERT INTO schema_migrations SELECT 13, '0013_waiting.sql', now64(9, 'UTC');

ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS threshold Float64 DEFAULT confidence;

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS threshold Float64 DEFAULT confidence;

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at, s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability, if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds, predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus, nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch, max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
LEFT JOIN (SELECT job_id, run, argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out' GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size, s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT 'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting',
    COMMENT COLUMN IF EXISTS threshold 'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability, confidence, threshold, nodes, regressors
FROM job_advice;

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus',
    COMMENT COLUMN IF EXISTS message 'the advice in a sentence',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'since the request',
    COMMENT COLUMN IF EXISTS epochs_done 'so far',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'assumed',
    COMMENT COLUMN IF EXISTS batch_size 'to run',
    COMMENT COLUMN IF EXISTS epochs 'that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that remain',
    COMMENT COLUMN IF EXISTS upper_bound_seconds 'that remain, with the confidence asked for',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so',
    COMMENT COLUMN IF EXISTS threshold 'least probability that was promised then: the confidence, or less where that is the mean of all promises';

INSERT INTO schema_migrations SELECT 14, '0014_mean.sql', now64(9, 'UTC');

ALTER TABLE node_sample MODIFY SETTING min_bytes_for_wide_part = 134217728;

INSERT INTO schema_migrations SELECT 15, '0015_fewer_files.sql', now64(9, 'UTC');

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS stream LowCardinality(String) DEFAULT 'JOB';

INSERT INTO schema_migrations SELECT 16, '0016_advice_stream.sql', now64(9, 'UTC');

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS state LowCardinality(String);

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS node_type LowCardinality(String);

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS batch_size_from UInt32;

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS batch_size_to UInt32;

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS ratio_low Nullable(Float64);

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS ratio_high Nullable(Float64);

CREATE OR REPLACE VIEW drifts AS
SELECT at, target, model_digest, state, scope,
    concat(multiIf(scope = 'node', node, scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if(scope = 'model' AND dataset != '', concat(' on ', dataset), ''),
        if(scope = 'model' AND node_type != '', concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')) AS drifted,
    since_at, ratio, ratio_low, ratio_high, before_ratio, jobs, rest_ratio, rest_jobs,
    coverage_ratio, known_changes, message
FROM regressor_drift;

ALTER TABLE drifts MODIFY COMMENT 'One line for each alarm that jobs no longer are as predicted, and for what becomes of each correction';

ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS state 'of a correction: active, replaced (a fit has learned it) or withdrawn; empty: an alarm',
    COMMENT COLUMN IF EXISTS scope 'all, node, node_type or model',
    COMMENT COLUMN IF EXISTS drifted 'the node, the type of nodes or the model, with its batch sizes, or all',
    COMMENT COLUMN IF EXISTS since_at 'begin of the first job that shows it',
    COMMENT COLUMN IF EXISTS ratio 'measured / predicted since then; 1 when a correction ends',
    COMMENT COLUMN IF EXISTS ratio_low 'least of its 95 % interval',
    COMMENT COLUMN IF EXISTS ratio_high 'most of its 95 % interval',
    COMMENT COLUMN IF EXISTS before_ratio 'what that was before',
    COMMENT COLUMN IF EXISTS jobs 'of what drifted, since then',
    COMMENT COLUMN IF EXISTS rest_ratio 'measured / predicted of all other jobs',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of epochs within the bound since then',
    COMMENT COLUMN IF EXISTS known_changes 'what else changed then';

CREATE OR REPLACE VIEW regressor_life AS
SELECT at, target, 'trained' AS kind, model_digest, family, toNullable(examples) AS examples, toNullable(settings) AS settings,
    toNullable(median_absolute_ratio) AS median_absolute_ratio, r2, toNullable(fit_seconds) AS fit_seconds, '' AS decided_by, reason, rival,
    NULL::Nullable(UInt32) AS judged_jobs, NULL::Nullable(UInt32) AS judged_settings, NULL::Nullable(Float64) AS judged_level,
    NULL::Nullable(Float64) AS loss, NULL::Nullable(Float64) AS rival_loss, NULL::Nullable(Float64) AS loss_difference_low, NULL::Nullable(Float64) AS loss_difference_high,
    NULL::Nullable(Float64) AS coverage_ratio, NULL::Nullable(Float64) AS rival_coverage_ratio, NULL::Nullable(Float64) AS drift_ratio, '' AS drifted, event_id, sequence
FROM regressor_trained
UNION ALL
SELECT at, target, 'promoted', model_digest, family, toNullable(examples), toNullable(settings),
    toNullable(median_absolute_ratio), r2, toNullable(fit_seconds), decided_by, reason, rival,
    nullIf(judged_jobs, 0), nullIf(judged_settings, 0), nullIf(judged_level, 0),
    loss, rival_loss, loss_difference_low, loss_difference_high,
    coverage_ratio, rival_coverage_ratio, NULL, '', event_id, sequence
FROM regressor_promoted
UNION ALL
SELECT e.at, e.target, 'rejected', e.model_digest, ifNull(f.family, ''), if(f.event_id = '', NULL, f.examples), if(f.event_id = '', NULL, f.settings),
    if(f.event_id = '', NULL, f.median_absolute_ratio), f.r2, if(f.event_id = '', NULL, f.fit_seconds), '', e.reason, e.rival,
    nullIf(e.judged_jobs, 0), nullIf(e.judged_settings, 0), nullIf(e.judged_level, 0),
    e.loss, e.rival_loss, e.loss_difference_low, e.loss_difference_high,
    e.coverage_ratio, e.rival_coverage_ratio, NULL, '', e.event_id, e.sequence
FROM regressor_rejected AS e
LEFT JOIN (SELECT * FROM regressor_trained ORDER BY sequence DESC LIMIT 1 BY target, model_digest) AS f ON f.target = e.target AND f.model_digest = e.model_digest
SETTINGS join_use_nulls = 0
UNION ALL
SELECT at, target, if(state IN ('replaced', 'withdrawn'), 'drift_end', 'drift'), model_digest, '', NULL, NULL,
    NULL, NULL, NULL, '', message, '',
    NULL, NULL, NULL,
    NULL, NULL, NULL, NULL,
    NULL, NULL, toNullable(ratio),
    concat(multiIf(scope = 'node', node, scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if(scope = 'model' AND dataset != '', concat(' on ', dataset), ''),
        if(scope = 'model' AND node_type != '', concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')), event_id, sequence
FROM regressor_drift;

ALTER TABLE regressor_life MODIFY COMMENT 'One line for each event of a regressor';

ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected, drift or drift_end',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS rival 'digest of what it was judged against',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS loss 'pinball loss on those jobs',
    COMMENT COLUMN IF EXISTS rival_loss 'of its rival on the same',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS drift_ratio 'measured / predicted',
    COMMENT COLUMN IF EXISTS drifted 'the node, the type of nodes or the model, with its batch sizes, or all';

CREATE OR REPLACE VIEW regressors AS
SELECT l.target AS target, l.model_digest AS model_digest,
    multiIf(l.model_digest = c.model_digest, 'in_use', countIf(l.kind = 'promoted') > 0, 'former', countIf(l.kind = 'rejected') > 0, 'rejected', 'challenger') AS state,
    argMaxIf(l.family, l.sequence, l.family != '') AS family, if(countIf(l.kind IN ('trained', 'promoted')) > 0, minIf(l.at, l.kind IN ('trained', 'promoted')), NULL) AS trained_at,
    if(countIf(l.kind = 'promoted') > 0, maxIf(l.at, l.kind = 'promoted'), NULL) AS promoted_at, countIf(l.kind = 'promoted') AS promotions,
    argMax(l.examples, l.sequence) AS examples, argMax(l.settings, l.sequence) AS settings, argMax(l.median_absolute_ratio, l.sequence) AS median_absolute_ratio,
    argMax(l.coverage_ratio, l.sequence) AS coverage_ratio, argMax(l.judged_jobs, l.sequence) AS judged_jobs,
    countIf(l.kind = 'drift') AS drifts, argMaxIf(l.decided_by, l.sequence, l.decided_by != '') AS decided_by,
    argMaxIf(l.reason, l.sequence, l.kind NOT IN ('drift', 'drift_end')) AS reason
FROM regressor_life AS l
LEFT JOIN (SELECT target, argMax(model_digest, sequence) AS model_digest FROM regressor_promoted GROUP BY target) AS c ON c.target = l.target
GROUP BY l.target, l.model_digest, c.model_digest HAVING countIf(l.kind NOT IN ('drift', 'drift_end')) > 0
SETTINGS join_use_nulls = 0;

ALTER TABLE regressors MODIFY COMMENT 'One line for each regressor that was fitted for a target';

ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'epoch_time, startup_time or accuracy',
    COMMENT COLUMN IF EXISTS model_digest 'sha256; what courier regressor show takes',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger',
    COMMENT COLUMN IF EXISTS trained_at 'NULL: nobody told',
    COMMENT COLUMN IF EXISTS promoted_at 'last time that it was put in use',
    COMMENT COLUMN IF EXISTS promotions 'how often',
    COMMENT COLUMN IF EXISTS examples 'it was fitted on',
    COMMENT COLUMN IF EXISTS settings 'distinct ones among them',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS drifts 'alarms and corrections while it was in use',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS reason 'of what was last decided';

INSERT INTO schema_migrations SELECT 17, '0017_corrections.sql', now64(9, 'UTC');

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE job_ended ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.dataset AS dataset, s.user AS user,
    s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds,
        s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued',
            'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes),
        CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus,
        s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
        if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9,
        NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    if(ended AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1,
        NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus,
            argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
            argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds,
            sum(l.io_wait_seconds) AS io_wait_seconds,
            sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
            sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
            sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch,
            NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds,
                0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '',
            argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds),
                sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT 'One line for each submitted job';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'its name',
    COMMENT COLUMN IF EXISTS model 'what is trained',
    COMMENT COLUMN IF EXISTS dataset 'on which; empty: none was named',
    COMMENT COLUMN IF EXISTS user 'who submitted it',
    COMMENT COLUMN IF EXISTS submitted_at 'UTC; the SLO counts from here',
    COMMENT COLUMN IF EXISTS slo_seconds '0: it has none',
    COMMENT COLUMN IF EXISTS confidence 'of keeping the SLO, as asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted',
    COMMENT COLUMN IF EXISTS advised_batch_size '0: none was advised',
    COMMENT COLUMN IF EXISTS predicted_seconds 'start-up and all epochs, as answered',
    COMMENT COLUMN IF EXISTS predicted_accuracy '0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as answered, 0 to 1',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost',
    COMMENT COLUMN IF EXISTS run 'how often it was started',
    COMMENT COLUMN IF EXISTS nodes 'where it runs, or was advised to',
    COMMENT COLUMN IF EXISTS batch_size
        'with which it trains, or trained last; 0: it never started',
    COMMENT COLUMN IF EXISTS cpus 'processes',
    COMMENT COLUMN IF EXISTS epochs 'asked for; 0: chosen by Courier',
    COMMENT COLUMN IF EXISTS epochs_done 'in its last run',
    COMMENT COLUMN IF EXISTS accuracy 'last one told, 0 to 1',
    COMMENT COLUMN IF EXISTS started_at 'first start; NULL: never',
    COMMENT COLUMN IF EXISTS waited_seconds 'from the request to the first start',
    COMMENT COLUMN IF EXISTS ended 'nothing more is expected of it',
    COMMENT COLUMN IF EXISTS ended_at 'NULL: it has not',
    COMMENT COLUMN IF EXISTS end_reason 'why it ended, in words',
    COMMENT COLUMN IF EXISTS last_event_at 'last sign of it in the log',
    COMMENT COLUMN IF EXISTS run_seconds 'of its last run',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end',
    COMMENT COLUMN IF EXISTS met_slo 'finished within the SLO; NULL: no SLO, or not ended',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'mean duration of its epochs',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'share of its nodes\' processors that waited for disks during its epochs, weighted by duration',
    COMMENT COLUMN IF EXISTS neighbours 'mean number of other jobs beside it during its epochs',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of its processes in its epochs',
    COMMENT COLUMN IF EXISTS memory_bytes 'largest resident memory at an epoch\'s end',
    COMMENT COLUMN IF EXISTS warned_at 'first warning that the SLO is at risk; NULL: none',
    COMMENT COLUMN IF EXISTS warned_cause
        'cause of the last warning: slow_epochs, io_wait, neighbours, late_start or regressor';

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, s.dataset AS dataset,
    if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at,
    s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability,
        if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds,
        s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at,
        if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds,
    predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id)
    AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus,
    nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence
    LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch,
    max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id
    AND l.run = e.run
LEFT JOIN (SELECT job_id, run,
    argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out'
    GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size,
        s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT
    'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds
        'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting',
    COMMENT COLUMN IF EXISTS threshold
        'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, dataset, batch_size, cpus, nodes, duration_seconds, loss,
    accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes,
        job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio,
        job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'that its threads waited for storage, summed; NULL: the kernel does not tell',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'share of the time in which some task of the job waited for a CPU',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'in which some task of the job waited for storage',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'in which all of them that had work waited for storage',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'in which some task of the job waited for memory',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'which of cpu, memory and io its cgroup told; the others are of its process tree';

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, dataset, slo_seconds, elapsed_seconds,
    epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy,
        probability, confidence, threshold, nodes, regressors
FROM job_advice;

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus',
    COMMENT COLUMN IF EXISTS message 'the advice in a sentence',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'since the request',
    COMMENT COLUMN IF EXISTS epochs_done 'so far',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'assumed',
    COMMENT COLUMN IF EXISTS batch_size 'to run',
    COMMENT COLUMN IF EXISTS epochs 'that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that remain',
    COMMENT COLUMN IF EXISTS upper_bound_seconds 'that remain, with the confidence asked for',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so',
    COMMENT COLUMN IF EXISTS threshold
        'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW alternatives AS
SELECT at, job_id, 'request' AS origin, decision, model, dataset, slo_seconds,
    alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability,
        alternative.reason AS reason,
    s.batch_size AS chosen_batch_size, s.predicted_accuracy AS chosen_accuracy
FROM job_submitted AS s ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT at, job_id, 'advice', decision, model, dataset, slo_seconds, alternative.batch_size,
    alternative.cpus,
    alternative.epochs, alternative.predicted_seconds,
    alternative.predicted_accuracy, alternative.probability, alternative.reason,
    a.batch_size, a.predicted_accuracy
FROM job_advice AS a ARRAY JOIN alternatives AS alternative;

ALTER TABLE alternatives MODIFY COMMENT 'One line for each alternative of each answer and advice';

ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS origin
        'request: of the answer to a request; advice: while it waited or ran',
    COMMENT COLUMN IF EXISTS epochs 'or those that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'NULL: not known',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS reason 'why it was chosen or lost',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'predicted, of the one that was chosen';

INSERT INTO schema_migrations SELECT 18, '0018_dataset.sql', now64(9, 'UTC');

ALTER TABLE advice MODIFY COMMENT
    'One row for each advice for a waiting or running job.';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS at 'Time of the advice, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus.',
    COMMENT COLUMN IF EXISTS message 'The advice in a sentence.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'Time since the submission.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs that had ended.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Jobs on the node, this one included, that the prediction assumed.',
    COMMENT COLUMN IF EXISTS batch_size 'Advised batch size.',
    COMMENT COLUMN IF EXISTS cpus 'Advised number of processes.',
    COMMENT COLUMN IF EXISTS epochs 'Remaining epochs.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time until the end.',
    COMMENT COLUMN IF EXISTS upper_bound_seconds
        'Upper bound of the time until the end, at the confidence.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy at the end, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS regressors 'Digest of the regressor for each target.';

ALTER TABLE alternatives MODIFY COMMENT
    'One row for each alternative of each advice, including the answer to the request.';

ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS at 'Time of the advice, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS origin
        'request: the answer to a request; advice: a later one for a waiting or running job.',
    COMMENT COLUMN IF EXISTS decision
        'Decision of the advice: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the alternative.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the alternative.',
    COMMENT COLUMN IF EXISTS epochs
        'Epochs of the alternative; of a running job, the remaining ones.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS predicted_accuracy
        'Predicted accuracy, 0 to 1; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS reason 'Reason why the alternative was or was not chosen.',
    COMMENT COLUMN IF EXISTS chosen_batch_size 'Batch size of the chosen alternative.',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'Predicted accuracy of the chosen alternative.';

ALTER TABLE drifts MODIFY COMMENT
    'One row for each drift alarm and for each change of a correction.';

ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS at 'Time of the event, UTC.',
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS model_digest 'SHA-256 of the regressor that was in use.',
    COMMENT COLUMN IF EXISTS state
        'State of a correction: active, replaced (by a fit) or withdrawn; empty for an alarm.',
    COMMENT COLUMN IF EXISTS scope 'all, node, node_type or model.',
    COMMENT COLUMN IF EXISTS drifted
        'Node, node type or model (with its batch sizes) that drifted, or all.',
    COMMENT COLUMN IF EXISTS since_at 'Start of the first job that shows the drift, UTC.',
    COMMENT COLUMN IF EXISTS ratio
        'Measured / predicted time since then; 1 when a correction ends.',
    COMMENT COLUMN IF EXISTS ratio_low 'Lower end of the 95 % interval of the ratio.',
    COMMENT COLUMN IF EXISTS ratio_high 'Upper end of the 95 % interval of the ratio.',
    COMMENT COLUMN IF EXISTS before_ratio 'Ratio before the drift.',
    COMMENT COLUMN IF EXISTS jobs 'Jobs in the scope since then.',
    COMMENT COLUMN IF EXISTS rest_ratio 'Measured / predicted time of all other jobs.',
    COMMENT COLUMN IF EXISTS rest_jobs 'Number of all other jobs.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of epochs within the upper bound since then.',
    COMMENT COLUMN IF EXISTS known_changes 'Other changes of the cluster at that time.',
    COMMENT COLUMN IF EXISTS message 'The drift in a sentence.';

ALTER TABLE epochs MODIFY COMMENT
    'One row for each epoch of a job.';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'End of the epoch, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS epoch 'Number of the epoch, from 1.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS batch_size 'Samples per iteration.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS duration_seconds 'Duration of the epoch with its validation.',
    COMMENT COLUMN IF EXISTS loss 'Loss that the job reported.',
    COMMENT COLUMN IF EXISTS accuracy 'Accuracy on the validation set, 0 to 1.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Time-weighted number of jobs on the node, this one included.',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'Busy share of the processors of the node.',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'Share of the processors of the node that waited for storage.',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of the processes of the job.',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'Resident memory of the job at the end of the epoch.',
    COMMENT COLUMN IF EXISTS job_read_bytes 'Bytes read from storage.',
    COMMENT COLUMN IF EXISTS job_written_bytes 'Bytes written to storage.',
    COMMENT COLUMN IF EXISTS training_samples 'Samples of the training set.',
    COMMENT COLUMN IF EXISTS node_cores 'Logical processors of the node.',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'Sum over threads of the time that they waited for storage; NULL if the kernel does not measure it.',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'Share of the time in which at least one task of the job waited for a CPU.',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'Share of the time in which at least one task of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'Share of the time in which all runnable tasks of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'Share of the time in which at least one task of the job waited for memory.',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'Which of cpu, memory and io were measured by the cgroup; the others by the process tree.';

ALTER TABLE jobs MODIFY COMMENT
    'One row for each submitted job.';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC; the SLO counts from here.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS decision
        'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS advised_batch_size 'Advised batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds
        'Predicted time of start-up and all epochs in the answer.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    COMMENT COLUMN IF EXISTS run 'Number of starts of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes on which the job runs or was advised to run.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the last epoch; 0 if the job never started.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS epochs 'Requested epochs; 0 if Courier chooses them.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs of the last run.',
    COMMENT COLUMN IF EXISTS accuracy 'Last reported accuracy, 0 to 1.',
    COMMENT COLUMN IF EXISTS started_at
        'Time of the first start, UTC; NULL if the job never started.',
    COMMENT COLUMN IF EXISTS waited_seconds 'Time from the submission to the first start.',
    COMMENT COLUMN IF EXISTS ended 'Whether the job has ended.',
    COMMENT COLUMN IF EXISTS ended_at 'Time of the end, UTC; NULL if the job has not ended.',
    COMMENT COLUMN IF EXISTS end_reason 'Reason of the end in words.',
    COMMENT COLUMN IF EXISTS last_event_at 'Time of the last event of the job, UTC.',
    COMMENT COLUMN IF EXISTS run_seconds 'Duration of the last run.',
    COMMENT COLUMN IF EXISTS response_seconds 'Time from the submission to the end.',
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job finished within its SLO; NULL without an SLO or before the end.',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'Mean duration of an epoch.',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    COMMENT COLUMN IF EXISTS neighbours 'Mean number of other jobs on the node during the epochs.',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of the processes of the job in its epochs.',
    COMMENT COLUMN IF EXISTS memory_bytes 'Largest resident memory at the end of an epoch.',
    COMMENT COLUMN IF EXISTS warned_at
        'First warning that the SLO is at risk, UTC; NULL if there was none.',
    COMMENT COLUMN IF EXISTS warned_cause
        'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.';

ALTER TABLE moves MODIFY COMMENT
    'One row for each step of a change of a running job.';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS at 'Time of the step, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS move 'Identity of the change.',
    COMMENT COLUMN IF EXISTS outcome 'carried_out, kept, undone or refused.',
    COMMENT COLUMN IF EXISTS means 'control: between epochs; restart: the job was started again.',
    COMMENT COLUMN IF EXISTS from_batch_size 'Batch size before the change.',
    COMMENT COLUMN IF EXISTS to_batch_size 'Batch size after the change.',
    COMMENT COLUMN IF EXISTS epoch 'First epoch with the new batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS before_epoch_seconds 'Measured epoch time before the change.',
    COMMENT COLUMN IF EXISTS predicted_epoch_seconds 'Predicted epoch time with the change.',
    COMMENT COLUMN IF EXISTS unmoved_epoch_seconds 'Predicted epoch time without the change.',
    COMMENT COLUMN IF EXISTS after_epoch_seconds 'Measured epoch time after the change.',
    COMMENT COLUMN IF EXISTS epochs_measured 'Epochs that were measured after the change.',
    COMMENT COLUMN IF EXISTS gain_ratio 'Measured gain / predicted gain.',
    COMMENT COLUMN IF EXISTS reason 'Reason why the change was refused or undone.';

ALTER TABLE node_load MODIFY COMMENT
    'One row for each node and minute, kept for 400 days.';

ALTER TABLE node_load
    COMMENT COLUMN IF EXISTS node 'Name of the node.',
    COMMENT COLUMN IF EXISTS minute 'Start of the minute, UTC.',
    COMMENT COLUMN IF EXISTS samples 'Number of samples.',
    COMMENT COLUMN IF EXISTS cpu_ratio 'Mean busy share of the processors, 0 to 1.',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'Largest busy share of a sample.',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'Mean share of the processors that waited for storage.',
    COMMENT COLUMN IF EXISTS load_average 'Mean load average.',
    COMMENT COLUMN IF EXISTS cores 'Logical processors; NULL if the number is unknown.';

ALTER TABLE node_load_hourly MODIFY COMMENT
    'One row for each node and hour, kept for five years.';

ALTER TABLE node_load_hourly
    COMMENT COLUMN IF EXISTS node 'Name of the node.',
    COMMENT COLUMN IF EXISTS hour 'Start of the hour, UTC.',
    COMMENT COLUMN IF EXISTS samples 'Number of samples.',
    COMMENT COLUMN IF EXISTS cpu_ratio 'Mean busy share of the processors, 0 to 1.',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'Largest busy share of a sample.',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'Mean share of the processors that waited for storage.',
    COMMENT COLUMN IF EXISTS load_average 'Mean load average.',
    COMMENT COLUMN IF EXISTS cores 'Logical processors; NULL if the number is unknown.';

ALTER TABLE promises MODIFY COMMENT
    'One row for each job with an SLO that started as advised and finished or failed: the promise and its result.';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo for a promise; any other value is no promise.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability
        'Probability of meeting the SLO when it was promised, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time from the submission to the end.',
    COMMENT COLUMN IF EXISTS response_seconds
        'Measured time from the submission to the end of the last epoch.',
    COMMENT COLUMN IF EXISTS kept 'Whether the job finished within its SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the promise.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the promise.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS promised_at
        'Time of the answer, or of the advice that ended the wait, UTC.';

ALTER TABLE regressor_life MODIFY COMMENT
    'One row for each event of a regressor.';

ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS at 'Time of the event, UTC.',
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected, drift or drift_end.',
    COMMENT COLUMN IF EXISTS model_digest
        'SHA-256 of the regressor file, as courier regressor show takes it.',
    COMMENT COLUMN IF EXISTS family 'Family of the regressor.',
    COMMENT COLUMN IF EXISTS examples 'Examples of the fit.',
    COMMENT COLUMN IF EXISTS settings 'Distinct configurations among the examples.',
    COMMENT COLUMN IF EXISTS median_absolute_ratio
        'Median of |error| / truth on held-out examples.',
    COMMENT COLUMN IF EXISTS r2 'Coefficient of determination on held-out examples.',
    COMMENT COLUMN IF EXISTS fit_seconds 'Duration of the fit.',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request.',
    COMMENT COLUMN IF EXISTS reason 'Reason of the event in words.',
    COMMENT COLUMN IF EXISTS rival 'Digest of the regressor with which it was compared.',
    COMMENT COLUMN IF EXISTS judged_jobs 'Jobs of the comparison.',
    COMMENT COLUMN IF EXISTS judged_settings 'Distinct configurations of the comparison.',
    COMMENT COLUMN IF EXISTS judged_level 'Significance level of the comparison.',
    COMMENT COLUMN IF EXISTS loss 'Pinball loss on the jobs of the comparison.',
    COMMENT COLUMN IF EXISTS rival_loss 'Pinball loss of the other regressor on the same jobs.',
    COMMENT COLUMN IF EXISTS loss_difference_low
        'Lower end of the interval of the difference in loss.',
    COMMENT COLUMN IF EXISTS loss_difference_high
        'Upper end of the interval of the difference in loss.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of the compared jobs within the upper bound.',
    COMMENT COLUMN IF EXISTS rival_coverage_ratio 'The same share for the other regressor.',
    COMMENT COLUMN IF EXISTS drift_ratio 'Measured / predicted time.',
    COMMENT COLUMN IF EXISTS drifted
        'Node, node type or model (with its batch sizes) that drifted, or all.',
    COMMENT COLUMN IF EXISTS event_id 'Identity of the event.',
    COMMENT COLUMN IF EXISTS sequence 'Sequence of the event in its stream.';

ALTER TABLE regressors MODIFY COMMENT
    'One row for each regressor that was fitted for a target.';

ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS model_digest
        'SHA-256 of the regressor file, as courier regressor show takes it.',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger.',
    COMMENT COLUMN IF EXISTS family 'Family of the regressor.',
    COMMENT COLUMN IF EXISTS trained_at 'Time of the fit, UTC; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS promoted_at 'Time of the last promotion, UTC.',
    COMMENT COLUMN IF EXISTS promotions 'Number of promotions.',
    COMMENT COLUMN IF EXISTS examples 'Examples of the fit.',
    COMMENT COLUMN IF EXISTS settings 'Distinct configurations among the examples.',
    COMMENT COLUMN IF EXISTS median_absolute_ratio
        'Median of |error| / truth on held-out examples.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of the compared jobs within the upper bound.',
    COMMENT COLUMN IF EXISTS judged_jobs 'Jobs of the comparison.',
    COMMENT COLUMN IF EXISTS drifts 'Alarms and corrections while it was in use.',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request.',
    COMMENT COLUMN IF EXISTS reason 'Reason of the last decision in words.';

ALTER TABLE warnings MODIFY COMMENT
    'One row for each warning that an SLO is at risk, and for each time that a warning ended.';

ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS at 'Time of the warning, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS cleared 'Whether the risk has passed.',
    COMMENT COLUMN IF EXISTS cause
        'slow_epochs, io_wait, neighbours, foreign, late_start or regressor.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO without a change, 0 to 1.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time until the end.',
    COMMENT COLUMN IF EXISTS left_seconds 'Time that the SLO leaves; negative if it is over.',
    COMMENT COLUMN IF EXISTS action 'Change that would meet the SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of that change.',
    COMMENT COLUMN IF EXISTS saved_probability 'Probability of meeting the SLO with that change.',
    COMMENT COLUMN IF EXISTS accuracy_loss 'Accuracy that the change costs; negative if it gains.',
    COMMENT COLUMN IF EXISTS message 'The warning in a sentence.';

INSERT INTO schema_migrations SELECT 19, '0019_comments.sql', now64(9, 'UTC');

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.dataset AS dataset, s.user AS user,
    s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds,
        s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued',
            'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes),
        CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus,
        s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
        if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9,
        NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    toBool(state = 'finished' AND greatest(p.epochs_done, e.epochs_done) < e.epochs
        AND (s.slo_seconds = 0 OR response_seconds <= s.slo_seconds)) AS incomplete,
    if(state IN ('finished', 'failed') AND NOT incomplete AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1,
        NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus,
            argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
            argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds,
            sum(l.io_wait_seconds) AS io_wait_seconds,
            sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
            sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
            sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch,
            NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds,
                0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '',
            argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds),
                sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, epochs, epochs_done,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT
    'One row for each submitted job.';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC; the SLO counts from here.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS decision
        'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS advised_batch_size 'Advised batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds
        'Predicted time of start-up and all epochs in the answer.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    COMMENT COLUMN IF EXISTS run 'Number of starts of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes on which the job runs or was advised to run.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the last epoch; 0 if the job never started.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS epochs 'Requested epochs; 0 if Courier chooses them.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs of the last run.',
    COMMENT COLUMN IF EXISTS accuracy 'Last reported accuracy, 0 to 1.',
    COMMENT COLUMN IF EXISTS started_at
        'Time of the first start, UTC; NULL if the job never started.',
    COMMENT COLUMN IF EXISTS waited_seconds 'Time from the submission to the first start.',
    COMMENT COLUMN IF EXISTS ended 'Whether the job has ended.',
    COMMENT COLUMN IF EXISTS ended_at 'Time of the end, UTC; NULL if the job has not ended.',
    COMMENT COLUMN IF EXISTS end_reason 'Reason of the end in words.',
    COMMENT COLUMN IF EXISTS last_event_at 'Time of the last event of the job, UTC.',
    COMMENT COLUMN IF EXISTS run_seconds 'Duration of the last run.',
    COMMENT COLUMN IF EXISTS response_seconds 'Time from the submission to the end.',
    COMMENT COLUMN IF EXISTS incomplete
        'Whether the job finished, not after its deadline, with fewer epochs than it should have.',
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job met its SLO; NULL without an SLO, before the end, or if the job was cancelled, lost or incomplete.',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'Mean duration of an epoch.',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    COMMENT COLUMN IF EXISTS neighbours 'Mean number of other jobs on the node during the epochs.',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of the processes of the job in its epochs.',
    COMMENT COLUMN IF EXISTS memory_bytes 'Largest resident memory at the end of an epoch.',
    COMMENT COLUMN IF EXISTS warned_at
        'First warning that the SLO is at risk, UTC; NULL if there was none.',
    COMMENT COLUMN IF EXISTS warned_cause
        'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.';

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, s.dataset AS dataset,
    if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at,
    s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability,
        if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds,
        s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at,
        if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds,
    predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id)
    AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, epochs_done, batch_size, cpus,
    nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence
    LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch,
    max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id
    AND l.run = e.run
LEFT JOIN (SELECT job_id, run,
    argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out'
    GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND NOT (e.outcome = 'finished'
        AND greatest(l.epoch, e.epochs_done) < e.epochs AND response_seconds <= s.slo_seconds) AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size,
        s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT
    'One row for each job with an SLO that started as advised and finished or failed, without incomplete jobs: the promise and its result.';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo for a promise; any other value is no promise.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability
        'Probability of meeting the SLO when it was promised, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time from the submission to the end.',
    COMMENT COLUMN IF EXISTS response_seconds
        'Measured time from the submission to the end of the last epoch.',
    COMMENT COLUMN IF EXISTS kept 'Whether the job finished within its SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the promise.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the promise.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS promised_at
        'Time of the answer, or of the advice that ended the wait, UTC.';

INSERT INTO schema_migrations SELECT 20, '0020_incomplete.sql', now64(9, 'UTC');

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS metric LowCardinality(String) AFTER accuracy;

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS metric_value Nullable(Float64) AFTER metric;

ALTER TABLE job_epoch
    COMMENT COLUMN IF EXISTS metric
        'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    COMMENT COLUMN IF EXISTS metric_value 'Value of metric as printed, such as 91.5 for 91.5 %.';

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, dataset, batch_size, cpus, nodes, duration_seconds, loss,
    accuracy, metric, metric_value, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes,
        job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio,
        job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT
    'One row for each epoch of a job.';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'End of the epoch, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS epoch 'Number of the epoch, from 1.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS batch_size 'Samples per iteration.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS duration_seconds 'Duration of the epoch with its validation.',
    COMMENT COLUMN IF EXISTS loss 'Loss that the job reported.',
    COMMENT COLUMN IF EXISTS accuracy 'Accuracy on the validation set, 0 to 1.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Time-weighted number of jobs on the node, this one included.',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'Busy share of the processors of the node.',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'Share of the processors of the node that waited for storage.',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of the processes of the job.',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'Resident memory of the job at the end of the epoch.',
    COMMENT COLUMN IF EXISTS job_read_bytes 'Bytes read from storage.',
    COMMENT COLUMN IF EXISTS job_written_bytes 'Bytes written to storage.',
    COMMENT COLUMN IF EXISTS training_samples 'Samples of the training set.',
    COMMENT COLUMN IF EXISTS node_cores 'Logical processors of the node.',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'Sum over threads of the time that they waited for storage; NULL if the kernel does not measure it.',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'Share of the time in which at least one task of the job waited for a CPU.',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'Share of the time in which at least one task of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'Share of the time in which all runnable tasks of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'Share of the time in which at least one task of the job waited for memory.',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'Which of cpu, memory and io were measured by the cgroup; the others by the process tree.',
    COMMENT COLUMN IF EXISTS metric
        'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    COMMENT COLUMN IF EXISTS metric_value 'Value of metric as printed, such as 91.5 for 91.5 %.';

INSERT INTO schema_migrations SELECT 21, '0021_metric.sql', now64(9, 'UTC');

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS limit_seconds Float64 AFTER heartbeat_seconds;

ALTER TABLE job_started
    COMMENT COLUMN IF EXISTS limit_seconds
        'Time limit of the batch system, from the start of the job; 0 if there is none.';

INSERT INTO schema_migrations SELECT 22, '0022_limit.sql', now64(9, 'UTC');

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

INSERT INTO schema_migrations SELECT 23, '0023_cpus.sql', now64(9, 'UTC');

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

INSERT INTO schema_migrations SELECT 24, '0024_moves.sql', now64(9, 'UTC');

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.job_id Array(String);

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.from_cpus Array(UInt32);

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.to_cpus Array(UInt32);

ALTER TABLE job_advice
    COMMENT COLUMN IF EXISTS loans.job_id
        'Running jobs that lend CPUs, so that the queued job may start.',
    COMMENT COLUMN IF EXISTS loans.from_cpus 'CPUs of each of them before the loan.',
    COMMENT COLUMN IF EXISTS loans.to_cpus 'CPUs of each of them during the loan.';

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

INSERT INTO schema_migrations SELECT 25, '0025_loans.sql', now64(9, 'UTC');

ALTER TABLE job_risk
    COMMENT COLUMN IF EXISTS cleared
        'True if the risk is over: the probability is above the confidence again, or the loss no longer rises.';

ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS cause
        'slow_epochs, io_wait, neighbours, foreign, late_start, regressor or diverging.';

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.dataset AS dataset, s.user AS user,
    s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds,
        s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued',
            'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes),
        CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus,
        s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
        if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9,
        NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    toBool(state = 'finished' AND greatest(p.epochs_done, e.epochs_done) < e.epochs
        AND (s.slo_seconds = 0 OR response_seconds <= s.slo_seconds)) AS incomplete,
    if(state IN ('finished', 'failed') AND NOT incomplete AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1,
        NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus,
            argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
            argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds,
            sum(l.io_wait_seconds) AS io_wait_seconds,
            sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
            sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
            sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch,
            NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds,
                0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '',
            argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds),
                sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, epochs, epochs_done,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(r.cause, sequence) AS cause FROM job_risk AS r
    WHERE NOT cleared AND r.cause != 'diverging' GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT
    'One row for each submitted job.';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC; the SLO counts from here.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS decision
        'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS advised_batch_size 'Advised batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds
        'Predicted time of start-up and all epochs in the answer.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    COMMENT COLUMN IF EXISTS run 'Number of starts of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes on which the job runs or was advised to run.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the last epoch; 0 if the job never started.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS epochs 'Requested epochs; 0 if Courier chooses them.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs of the last run.',
    COMMENT COLUMN IF EXISTS accuracy 'Last reported accuracy, 0 to 1.',
    COMMENT COLUMN IF EXISTS started_at
        'Time of the first start, UTC; NULL if the job never started.',
    COMMENT COLUMN IF EXISTS waited_seconds 'Time from the submission to the first start.',
    COMMENT COLUMN IF EXISTS ended 'Whether the job has ended.',
    COMMENT COLUMN IF EXISTS ended_at 'Time of the end, UTC; NULL if the job has not ended.',
    COMMENT COLUMN IF EXISTS end_reason 'Reason of the end in words.',
    COMMENT COLUMN IF EXISTS last_event_at 'Time of the last event of the job, UTC.',
    COMMENT COLUMN IF EXISTS run_seconds 'Duration of the last run.',
    COMMENT COLUMN IF EXISTS response_seconds 'Time from the submission to the end.',
    COMMENT COLUMN IF EXISTS incomplete
        'Whether the job finished, not after its deadline, with fewer epochs than it should have.',
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job met its SLO; NULL without an SLO, before the end, or if the job was cancelled, lost or incomplete.',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'Mean duration of an epoch.',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    COMMENT COLUMN IF EXISTS neighbours 'Mean number of other jobs on the node during the epochs.',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of the processes of the job in its epochs.',
    COMMENT COLUMN IF EXISTS memory_bytes 'Largest resident memory at the end of an epoch.',
    COMMENT COLUMN IF EXISTS warned_at
        'First warning that the SLO is at risk, UTC; NULL if there was none.',
    COMMENT COLUMN IF EXISTS warned_cause
        'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.';

INSERT INTO schema_migrations SELECT 26, '0026_diverging.sql', now64(9, 'UTC');

ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS purpose
        '"lent", "returned", "at_risk", "left_over", "foreign_load" or "saved"; empty for other moves.';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS purpose
        'lent, returned, at_risk, left_over, foreign_load or saved; empty for a change of the batch size.';

INSERT INTO schema_migrations SELECT 27, '0027_saved.sql', now64(9, 'UTC');

ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS outcome
        '"applied", "carried_out", "kept", "undone", "refused" or "dry_run"';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS outcome
        'applied (the CPUs have changed), carried_out, kept, undone, refused or, if moves are not turned on, dry_run.';

INSERT INTO schema_migrations SELECT 28, '0028_applied.sql', now64(9, 'UTC');

CREATE DATABASE IF NOT EXISTS courier;

USE courier;

CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32,
    name String,
    applied_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree ORDER BY number;

CREATE OR REPLACE TABLE job_submitted AS courier_v1.job_submitted ENGINE = Distributed(main, courier_v1, job_submitted, cityHash64(job_id));

CREATE OR REPLACE TABLE job_started AS courier_v1.job_started ENGINE = Distributed(main, courier_v1, job_started, cityHash64(job_id));

CREATE OR REPLACE TABLE job_epoch AS courier_v1.job_epoch ENGINE = Distributed(main, courier_v1, job_epoch, cityHash64(job_id));

CREATE OR REPLACE TABLE job_ended AS courier_v1.job_ended ENGINE = Distributed(main, courier_v1, job_ended, cityHash64(job_id));

CREATE OR REPLACE TABLE job_advice AS courier_v1.job_advice ENGINE = Distributed(main, courier_v1, job_advice, cityHash64(job_id));

CREATE OR REPLACE TABLE node_sample AS courier_v1.node_sample ENGINE = Distributed(main, courier_v1, node_sample, cityHash64(node));

CREATE OR REPLACE TABLE regressor_promoted AS courier_v1.regressor_promoted ENGINE = Distributed(main, courier_v1, regressor_promoted, cityHash64(target));

CREATE OR REPLACE TABLE regressor_rejected AS courier_v1.regressor_rejected ENGINE = Distributed(main, courier_v1, regressor_rejected, cityHash64(target));

CREATE OR REPLACE TABLE shard_position AS courier_v1.log_position ENGINE = Distributed(main, courier_v1, log_position, cityHash64(stream));

CREATE OR REPLACE VIEW log_position AS SELECT stream, min(position) AS sequence, min(at) AS inserted_at FROM (SELECT stream, _shard_num AS shard, max(sequence) AS position, max(inserted_at) AS at FROM shard_position GROUP BY stream, shard) GROUP BY stream HAVING count() = 1;

INSERT INTO schema_migrations SELECT 1, '0001_log.sql', now64(9, 'UTC');

CREATE OR REPLACE TABLE node_minute AS courier_v1.node_minute ENGINE = Distributed(main, courier_v1, node_minute, cityHash64(node));

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

INSERT INTO schema_migrations SELECT 2, '0002_views.sql', now64(9, 'UTC');

CREATE OR REPLACE TABLE job_risk AS courier_v1.job_risk ENGINE = Distributed(main, courier_v1, job_risk, cityHash64(job_id));

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

INSERT INTO schema_migrations SELECT 3, '0003_risk.sql', now64(9, 'UTC');

ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS verdict LowCardinality(String);

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

INSERT INTO schema_migrations SELECT 4, '0004_admission.sql', now64(9, 'UTC');

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS moves Array(LowCardinality(String));

CREATE OR REPLACE TABLE job_moved AS courier_v1.job_moved ENGINE = Distributed(main, courier_v1, job_moved, cityHash64(job_id));

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

INSERT INTO schema_migrations SELECT 5, '0005_moves.sql', now64(9, 'UTC');

CREATE OR REPLACE TABLE regressor_drift AS courier_v1.regressor_drift ENGINE = Distributed(main, courier_v1, regressor_drift, cityHash64(target));

INSERT INTO schema_migrations SELECT 6, '0006_drift.sql', now64(9, 'UTC');

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS validation_samples UInt64;

INSERT INTO schema_migrations SELECT 7, '0007_validation.sql', now64(9, 'UTC');

CREATE OR REPLACE TABLE regressor_trained AS courier_v1.regressor_trained ENGINE = Distributed(main, courier_v1, regressor_trained, cityHash64(target));

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS decided_by LowCardinality(String);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS rival String;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS since_sequence UInt64;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS judged_level Float64;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS judged_jobs UInt32;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS judged_settings UInt32;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS loss Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS rival_loss Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS loss_difference_low Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS loss_difference_high Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS coverage_ratio Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS rival_coverage_ratio Nullable(Float64);

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS gained_settings UInt32;

ALTER TABLE regressor_promoted ADD COLUMN IF NOT EXISTS lost_settings UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS rival String;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS judged_level Float64;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS judged_jobs UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS judged_settings UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS loss Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS rival_loss Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS loss_difference_low Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS loss_difference_high Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS coverage_ratio Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS rival_coverage_ratio Nullable(Float64);

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS gained_settings UInt32;

ALTER TABLE regressor_rejected ADD COLUMN IF NOT EXISTS lost_settings UInt32;

INSERT INTO schema_migrations SELECT 8, '0008_judged.sql', now64(9, 'UTC');

CREATE VIEW IF NOT EXISTS regressor_life AS
SELECT at, target, 'trained' AS kind, model_digest, family, toNullable(examples) AS examples, toNullable(settings) AS settings,
    toNullable(median_absolute_ratio) AS median_absolute_ratio, r2, toNullable(fit_seconds) AS fit_seconds, '' AS decided_by, reason, rival,
    NULL::Nullable(UInt32) AS judged_jobs, NULL::Nullable(UInt32) AS judged_settings, NULL::Nullable(Float64) AS judged_level,
    NULL::Nullable(Float64) AS loss, NULL::Nullable(Float64) AS rival_loss, NULL::Nullable(Float64) AS loss_difference_low, NULL::Nullable(Float64) AS loss_difference_high,
    NULL::Nullable(Float64) AS coverage_ratio, NULL::Nullable(Float64) AS rival_coverage_ratio, NULL::Nullable(Float64) AS drift_ratio, '' AS drifted, event_id, sequence
FROM regressor_trained
UNION ALL
SELECT at, target, 'promoted', model_digest, family, toNullable(examples), toNullable(settings),
    toNullable(median_absolute_ratio), r2, toNullable(fit_seconds), decided_by, reason, rival,
    nullIf(judged_jobs, 0), nullIf(judged_settings, 0), nullIf(judged_level, 0),
    loss, rival_loss, loss_difference_low, loss_difference_high,
    coverage_ratio, rival_coverage_ratio, NULL, '', event_id, sequence
FROM regressor_promoted
UNION ALL
SELECT e.at, e.target, 'rejected', e.model_digest, ifNull(f.family, ''), if(f.event_id = '', NULL, f.examples), if(f.event_id = '', NULL, f.settings),
    if(f.event_id = '', NULL, f.median_absolute_ratio), f.r2, if(f.event_id = '', NULL, f.fit_seconds), '', e.reason, e.rival,
    nullIf(e.judged_jobs, 0), nullIf(e.judged_settings, 0), nullIf(e.judged_level, 0),
    e.loss, e.rival_loss, e.loss_difference_low, e.loss_difference_high,
    e.coverage_ratio, e.rival_coverage_ratio, NULL, '', e.event_id, e.sequence
FROM regressor_rejected AS e
LEFT JOIN (SELECT * FROM regressor_trained ORDER BY sequence DESC LIMIT 1 BY target, model_digest) AS f ON f.target = e.target AND f.model_digest = e.model_digest
SETTINGS join_use_nulls = 0
UNION ALL
SELECT at, target, 'drift', model_digest, '', NULL, NULL,
    NULL, NULL, NULL, '', message, '',
    NULL, NULL, NULL,
    NULL, NULL, NULL, NULL,
    NULL, NULL, toNullable(ratio), multiIf(scope = 'node', node, scope = 'model', model, 'all'), event_id, sequence
FROM regressor_drift;

INSERT INTO schema_migrations SELECT 9, '0009_regressor_life.sql', now64(9, 'UTC');

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS cpu_model LowCardinality(String);

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS speed_operations_per_second Nullable(Float64);

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_cores Array(UInt32);

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_cpu_model Array(LowCardinality(String));

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_speed_operations_per_second Array(Float64);

INSERT INTO schema_migrations SELECT 10, '0010_nodes.sql', now64(9, 'UTC');

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS coverage_ratio Nullable(Float64);

INSERT INTO schema_migrations SELECT 11, '0011_coverage.sql', now64(9, 'UTC');

ALTER TABLE node_minute ADD COLUMN IF NOT EXISTS cores SimpleAggregateFunction(max, UInt32);

CREATE OR REPLACE TABLE node_hour AS courier_v1.node_hour ENGINE = Distributed(main, courier_v1, node_hour, cityHash64(node));

CREATE OR REPLACE TABLE job_run AS courier_v1.job_run ENGINE = Distributed(main, courier_v1, job_run, cityHash64(job_id));

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.user AS user, s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence, s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds, s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence), e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued', 'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes), CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus, s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at, if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9, NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    if(ended AND s.slo_seconds > 0, toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1, NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at, min(l.started_at) AS first_started_at, argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus, argMax(l.epoch, (l.run, l.sequence)) AS epochs_done, argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds, sum(l.io_wait_seconds) AS io_wait_seconds, sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds, sum(l.concurrent_of_seconds) AS concurrent_of_seconds, sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at, arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch, NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds, 0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '', argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch), argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds), sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at, argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at, s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, elapsed_seconds, predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus, nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch, max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
LEFT JOIN (SELECT job_id, run, argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out' GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size, s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes, job_written_bytes, training_samples, node_cores
FROM job_epoch;

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability, confidence, nodes, regressors
FROM job_advice;

CREATE OR REPLACE VIEW alternatives AS
SELECT at, job_id, 'request' AS origin, decision, model, slo_seconds, alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability, alternative.reason AS reason,
    s.batch_size AS chosen_batch_size, s.predicted_accuracy AS chosen_accuracy
FROM job_submitted AS s ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT at, job_id, 'advice', decision, model, slo_seconds, alternative.batch_size, alternative.cpus,
    alternative.epochs, alternative.predicted_seconds,
    alternative.predicted_accuracy, alternative.probability, alternative.reason,
    a.batch_size, a.predicted_accuracy
FROM job_advice AS a ARRAY JOIN alternatives AS alternative;

CREATE VIEW IF NOT EXISTS warnings AS
SELECT at, job_id, run, cleared, cause, probability, confidence, predicted_seconds, left_seconds, action, batch_size, saved_probability, accuracy_loss, message
FROM job_risk;

CREATE VIEW IF NOT EXISTS moves AS
SELECT at, job_id, run, move, outcome, means, from_batch_size, to_batch_size, epoch, before_epoch_seconds, predicted_epoch_seconds, unmoved_epoch_seconds, after_epoch_seconds,
    epochs_measured, gain_ratio, reason
FROM job_moved;

CREATE VIEW IF NOT EXISTS drifts AS
SELECT at, target, model_digest, scope, multiIf(scope = 'node', node, scope = 'model', model, 'all') AS drifted, since_at, ratio, before_ratio, jobs, rest_ratio, rest_jobs,
    coverage_ratio, known_changes, message
FROM regressor_drift;

CREATE OR REPLACE VIEW node_load AS
SELECT m.node AS node, m.minute AS minute, sum(m.samples) AS samples, avgMerge(m.cpu_ratio) AS cpu_ratio,
    max(m.cpu_ratio_max) AS cpu_ratio_max, avgMerge(m.io_wait_ratio) AS io_wait_ratio, avgMerge(m.load_average) AS load_average, nullIf(max(m.cores), 0) AS cores
FROM node_minute AS m GROUP BY node, minute;

CREATE VIEW IF NOT EXISTS node_load_hourly AS
SELECT h.node AS node, h.hour AS hour, sum(h.samples) AS samples, avgMerge(h.cpu_ratio) AS cpu_ratio,
    max(h.cpu_ratio_max) AS cpu_ratio_max, avgMerge(h.io_wait_ratio) AS io_wait_ratio, avgMerge(h.load_average) AS load_average, nullIf(max(h.cores), 0) AS cores
FROM node_hour AS h GROUP BY node, hour;

CREATE VIEW IF NOT EXISTS regressors AS
SELECT l.target AS target, l.model_digest AS model_digest,
    multiIf(l.model_digest = c.model_digest, 'in_use', countIf(l.kind = 'promoted') > 0, 'former', countIf(l.kind = 'rejected') > 0, 'rejected', 'challenger') AS state,
    argMaxIf(l.family, l.sequence, l.family != '') AS family, if(countIf(l.kind IN ('trained', 'promoted')) > 0, minIf(l.at, l.kind IN ('trained', 'promoted')), NULL) AS trained_at,
    if(countIf(l.kind = 'promoted') > 0, maxIf(l.at, l.kind = 'promoted'), NULL) AS promoted_at, countIf(l.kind = 'promoted') AS promotions,
    argMax(l.examples, l.sequence) AS examples, argMax(l.settings, l.sequence) AS settings, argMax(l.median_absolute_ratio, l.sequence) AS median_absolute_ratio,
    argMax(l.coverage_ratio, l.sequence) AS coverage_ratio, argMax(l.judged_jobs, l.sequence) AS judged_jobs,
    countIf(l.kind = 'drift') AS drifts, argMaxIf(l.decided_by, l.sequence, l.decided_by != '') AS decided_by, argMaxIf(l.reason, l.sequence, l.kind != 'drift') AS reason
FROM regressor_life AS l
LEFT JOIN (SELECT target, argMax(model_digest, sequence) AS model_digest FROM regressor_promoted GROUP BY target) AS c ON c.target = l.target
GROUP BY l.target, l.model_digest, c.model_digest HAVING countIf(l.kind != 'drift') > 0
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT 'One line for each submitted job';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'its name',
    COMMENT COLUMN IF EXISTS model 'what is trained',
    COMMENT COLUMN IF EXISTS user 'who submitted it',
    COMMENT COLUMN IF EXISTS submitted_at 'UTC; the SLO counts from here',
    COMMENT COLUMN IF EXISTS slo_seconds '0: it has none',
    COMMENT COLUMN IF EXISTS confidence 'of keeping the SLO, as asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted',
    COMMENT COLUMN IF EXISTS advised_batch_size '0: none was advised',
    COMMENT COLUMN IF EXISTS predicted_seconds 'start-up and all epochs, as answered',
    COMMENT COLUMN IF EXISTS predicted_accuracy '0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as answered, 0 to 1',
    COMMENT COLUMN IF EXISTS state 'submitted, queued, refused, running, finished, failed, cancelled or lost',
    COMMENT COLUMN IF EXISTS run 'how often it was started',
    COMMENT COLUMN IF EXISTS nodes 'where it runs, or was advised to',
    COMMENT COLUMN IF EXISTS batch_size 'with which it trains, or trained last; 0: it never started',
    COMMENT COLUMN IF EXISTS cpus 'processes',
    COMMENT COLUMN IF EXISTS epochs 'asked for; 0: chosen by Courier',
    COMMENT COLUMN IF EXISTS epochs_done 'in its last run',
    COMMENT COLUMN IF EXISTS accuracy 'last one told, 0 to 1',
    COMMENT COLUMN IF EXISTS started_at 'first start; NULL: never',
    COMMENT COLUMN IF EXISTS waited_seconds 'from the request to the first start',
    COMMENT COLUMN IF EXISTS ended 'nothing more is expected of it',
    COMMENT COLUMN IF EXISTS ended_at 'NULL: it has not',
    COMMENT COLUMN IF EXISTS end_reason 'why it ended, in words',
    COMMENT COLUMN IF EXISTS last_event_at 'last sign of it in the log',
    COMMENT COLUMN IF EXISTS run_seconds 'of its last run',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end',
    COMMENT COLUMN IF EXISTS met_slo 'finished within the SLO; NULL: no SLO, or not ended',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'mean duration of its epochs',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'share of its nodes\' processors that waited for disks during its epochs, weighted by duration',
    COMMENT COLUMN IF EXISTS neighbours 'mean number of other jobs beside it during its epochs',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of its processes in its epochs',
    COMMENT COLUMN IF EXISTS memory_bytes 'largest resident memory at an epoch\'s end',
    COMMENT COLUMN IF EXISTS warned_at 'first warning that the SLO is at risk; NULL: none',
    COMMENT COLUMN IF EXISTS warned_cause 'cause of the last warning: slow_epochs, io_wait, neighbours, late_start or regressor';

ALTER TABLE promises MODIFY COMMENT 'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting';

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio 'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node';

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus',
    COMMENT COLUMN IF EXISTS message 'the advice in a sentence',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'since the request',
    COMMENT COLUMN IF EXISTS epochs_done 'so far',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'assumed',
    COMMENT COLUMN IF EXISTS batch_size 'to run',
    COMMENT COLUMN IF EXISTS epochs 'that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that remain',
    COMMENT COLUMN IF EXISTS upper_bound_seconds 'that remain, with the confidence asked for',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so';

ALTER TABLE alternatives MODIFY COMMENT 'One line for each alternative of each answer and advice';

ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS origin 'request: of the answer to a request; advice: while it waited or ran',
    COMMENT COLUMN IF EXISTS epochs 'or those that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'NULL: not known',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS reason 'why it was chosen or lost',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'predicted, of the one that was chosen';

ALTER TABLE warnings MODIFY COMMENT 'One line for each warning that an SLO is at risk, and each all-clear';

ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS cleared 'all clear',
    COMMENT COLUMN IF EXISTS cause 'slow_epochs, io_wait, neighbours, late_start or regressor',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO as it runs',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that it still takes',
    COMMENT COLUMN IF EXISTS left_seconds 'that the SLO leaves; negative: it is over',
    COMMENT COLUMN IF EXISTS action 'what saves it',
    COMMENT COLUMN IF EXISTS saved_probability 'of keeping the SLO then',
    COMMENT COLUMN IF EXISTS accuracy_loss 'what that costs; negative is a gain';

ALTER TABLE moves MODIFY COMMENT 'One line for each step of a move of a running job';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS outcome 'carried_out, kept, undone or refused',
    COMMENT COLUMN IF EXISTS means 'control: between epochs; restart: started again',
    COMMENT COLUMN IF EXISTS epoch 'the first with the new batch size; 0: none',
    COMMENT COLUMN IF EXISTS before_epoch_seconds 'measured before',
    COMMENT COLUMN IF EXISTS predicted_epoch_seconds 'with the move',
    COMMENT COLUMN IF EXISTS unmoved_epoch_seconds 'predicted without it',
    COMMENT COLUMN IF EXISTS after_epoch_seconds 'measured after',
    COMMENT COLUMN IF EXISTS gain_ratio 'measured gain / predicted gain',
    COMMENT COLUMN IF EXISTS reason 'why it was refused or undone';

ALTER TABLE drifts MODIFY COMMENT 'One line for each alarm that jobs no longer are as predicted';

ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS scope 'all, node or model',
    COMMENT COLUMN IF EXISTS drifted 'the node or model, or all',
    COMMENT COLUMN IF EXISTS since_at 'begin of the first job that shows it',
    COMMENT COLUMN IF EXISTS ratio 'measured / predicted since then',
    COMMENT COLUMN IF EXISTS before_ratio 'what that was before',
    COMMENT COLUMN IF EXISTS jobs 'of what drifted, since then',
    COMMENT COLUMN IF EXISTS rest_ratio 'measured / predicted of all other jobs',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of epochs within the bound since then',
    COMMENT COLUMN IF EXISTS known_changes 'what else changed then';

ALTER TABLE node_load MODIFY COMMENT 'One line for each node and minute, kept for 400 days';

ALTER TABLE node_load
    COMMENT COLUMN IF EXISTS minute 'its begin, UTC',
    COMMENT COLUMN IF EXISTS samples 'that came',
    COMMENT COLUMN IF EXISTS cpu_ratio 'mean busy share of the processors, 0 to 1',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'busiest sample',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'mean share of the processors that waited for disks',
    COMMENT COLUMN IF EXISTS load_average 'mean',
    COMMENT COLUMN IF EXISTS cores 'logical processors; NULL: not told';

ALTER TABLE node_load_hourly MODIFY COMMENT 'One line for each node and hour, kept for five years';

ALTER TABLE node_load_hourly
    COMMENT COLUMN IF EXISTS hour 'its begin, UTC',
    COMMENT COLUMN IF EXISTS samples 'that came',
    COMMENT COLUMN IF EXISTS cpu_ratio 'mean busy share of the processors, 0 to 1',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'busiest sample',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'mean share of the processors that waited for disks',
    COMMENT COLUMN IF EXISTS load_average 'mean',
    COMMENT COLUMN IF EXISTS cores 'logical processors; NULL: not told';

ALTER TABLE regressors MODIFY COMMENT 'One line for each regressor that was fitted for a target';

ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'epoch_time, startup_time or accuracy',
    COMMENT COLUMN IF EXISTS model_digest 'sha256; what courier regressor show takes',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger',
    COMMENT COLUMN IF EXISTS trained_at 'NULL: nobody told',
    COMMENT COLUMN IF EXISTS promoted_at 'last time that it was put in use',
    COMMENT COLUMN IF EXISTS promotions 'how often',
    COMMENT COLUMN IF EXISTS examples 'it was fitted on',
    COMMENT COLUMN IF EXISTS settings 'distinct ones among them',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS drifts 'alarms while it was in use',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS reason 'of what was last decided';

ALTER TABLE regressor_life MODIFY COMMENT 'One line for each event of a regressor';

ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected or drift',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS rival 'digest of what it was judged against',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS loss 'pinball loss on those jobs',
    COMMENT COLUMN IF EXISTS rival_loss 'of its rival on the same',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS drift_ratio 'measured / predicted',
    COMMENT COLUMN IF EXISTS drifted 'the node or model, or all';

INSERT INTO schema_migrations SELECT 12, '0012_people.sql', now64(9, 'UTC');

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_wait_seconds Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cpu_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cpu_full_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_full_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_memory_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_memory_full_pressure_ratio Nullable(Float64);

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cgroup_figures Array(LowCardinality(String));

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS io_full_pressure_ratio Nullable(Float64);

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS memory_full_pressure_ratio Nullable(Float64);

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes, job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio, job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio 'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds 'that its threads waited for storage, summed; NULL: the kernel does not tell',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio 'share of the time in which some task of the job waited for a CPU',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio 'in which some task of the job waited for storage',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio 'in which all of them that had work waited for storage',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio 'in which some task of the job waited for memory',
    COMMENT COLUMN IF EXISTS job_cgroup_figures 'which of cpu, memory and io its cgroup told; the others are of its process tree';

INSERT INTO schema_migrations SELECT 13, '0013_waiting.sql', now64(9, 'UTC');

ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS threshold Float64 DEFAULT confidence;

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS threshold Float64 DEFAULT confidence;

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at, s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability, if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds, predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus, nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch, max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
LEFT JOIN (SELECT job_id, run, argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out' GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size, s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT 'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting',
    COMMENT COLUMN IF EXISTS threshold 'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability, confidence, threshold, nodes, regressors
FROM job_advice;

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus',
    COMMENT COLUMN IF EXISTS message 'the advice in a sentence',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'since the request',
    COMMENT COLUMN IF EXISTS epochs_done 'so far',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'assumed',
    COMMENT COLUMN IF EXISTS batch_size 'to run',
    COMMENT COLUMN IF EXISTS epochs 'that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that remain',
    COMMENT COLUMN IF EXISTS upper_bound_seconds 'that remain, with the confidence asked for',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so',
    COMMENT COLUMN IF EXISTS threshold 'least probability that was promised then: the confidence, or less where that is the mean of all promises';

INSERT INTO schema_migrations SELECT 14, '0014_mean.sql', now64(9, 'UTC');

INSERT INTO schema_migrations SELECT 15, '0015_fewer_files.sql', now64(9, 'UTC');

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS stream LowCardinality(String) DEFAULT 'JOB';

INSERT INTO schema_migrations SELECT 16, '0016_advice_stream.sql', now64(9, 'UTC');

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS state LowCardinality(String);

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS node_type LowCardinality(String);

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS batch_size_from UInt32;

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS batch_size_to UInt32;

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS ratio_low Nullable(Float64);

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS ratio_high Nullable(Float64);

CREATE OR REPLACE VIEW drifts AS
SELECT at, target, model_digest, state, scope,
    concat(multiIf(scope = 'node', node, scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if(scope = 'model' AND dataset != '', concat(' on ', dataset), ''),
        if(scope = 'model' AND node_type != '', concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')) AS drifted,
    since_at, ratio, ratio_low, ratio_high, before_ratio, jobs, rest_ratio, rest_jobs,
    coverage_ratio, known_changes, message
FROM regressor_drift;

ALTER TABLE drifts MODIFY COMMENT 'One line for each alarm that jobs no longer are as predicted, and for what becomes of each correction';

ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS state 'of a correction: active, replaced (a fit has learned it) or withdrawn; empty: an alarm',
    COMMENT COLUMN IF EXISTS scope 'all, node, node_type or model',
    COMMENT COLUMN IF EXISTS drifted 'the node, the type of nodes or the model, with its batch sizes, or all',
    COMMENT COLUMN IF EXISTS since_at 'begin of the first job that shows it',
    COMMENT COLUMN IF EXISTS ratio 'measured / predicted since then; 1 when a correction ends',
    COMMENT COLUMN IF EXISTS ratio_low 'least of its 95 % interval',
    COMMENT COLUMN IF EXISTS ratio_high 'most of its 95 % interval',
    COMMENT COLUMN IF EXISTS before_ratio 'what that was before',
    COMMENT COLUMN IF EXISTS jobs 'of what drifted, since then',
    COMMENT COLUMN IF EXISTS rest_ratio 'measured / predicted of all other jobs',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of epochs within the bound since then',
    COMMENT COLUMN IF EXISTS known_changes 'what else changed then';

CREATE OR REPLACE VIEW regressor_life AS
SELECT at, target, 'trained' AS kind, model_digest, family, toNullable(examples) AS examples, toNullable(settings) AS settings,
    toNullable(median_absolute_ratio) AS median_absolute_ratio, r2, toNullable(fit_seconds) AS fit_seconds, '' AS decided_by, reason, rival,
    NULL::Nullable(UInt32) AS judged_jobs, NULL::Nullable(UInt32) AS judged_settings, NULL::Nullable(Float64) AS judged_level,
    NULL::Nullable(Float64) AS loss, NULL::Nullable(Float64) AS rival_loss, NULL::Nullable(Float64) AS loss_difference_low, NULL::Nullable(Float64) AS loss_difference_high,
    NULL::Nullable(Float64) AS coverage_ratio, NULL::Nullable(Float64) AS rival_coverage_ratio, NULL::Nullable(Float64) AS drift_ratio, '' AS drifted, event_id, sequence
FROM regressor_trained
UNION ALL
SELECT at, target, 'promoted', model_digest, family, toNullable(examples), toNullable(settings),
    toNullable(median_absolute_ratio), r2, toNullable(fit_seconds), decided_by, reason, rival,
    nullIf(judged_jobs, 0), nullIf(judged_settings, 0), nullIf(judged_level, 0),
    loss, rival_loss, loss_difference_low, loss_difference_high,
    coverage_ratio, rival_coverage_ratio, NULL, '', event_id, sequence
FROM regressor_promoted
UNION ALL
SELECT e.at, e.target, 'rejected', e.model_digest, ifNull(f.family, ''), if(f.event_id = '', NULL, f.examples), if(f.event_id = '', NULL, f.settings),
    if(f.event_id = '', NULL, f.median_absolute_ratio), f.r2, if(f.event_id = '', NULL, f.fit_seconds), '', e.reason, e.rival,
    nullIf(e.judged_jobs, 0), nullIf(e.judged_settings, 0), nullIf(e.judged_level, 0),
    e.loss, e.rival_loss, e.loss_difference_low, e.loss_difference_high,
    e.coverage_ratio, e.rival_coverage_ratio, NULL, '', e.event_id, e.sequence
FROM regressor_rejected AS e
LEFT JOIN (SELECT * FROM regressor_trained ORDER BY sequence DESC LIMIT 1 BY target, model_digest) AS f ON f.target = e.target AND f.model_digest = e.model_digest
SETTINGS join_use_nulls = 0
UNION ALL
SELECT at, target, if(state IN ('replaced', 'withdrawn'), 'drift_end', 'drift'), model_digest, '', NULL, NULL,
    NULL, NULL, NULL, '', message, '',
    NULL, NULL, NULL,
    NULL, NULL, NULL, NULL,
    NULL, NULL, toNullable(ratio),
    concat(multiIf(scope = 'node', node, scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if(scope = 'model' AND dataset != '', concat(' on ', dataset), ''),
        if(scope = 'model' AND node_type != '', concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')), event_id, sequence
FROM regressor_drift;

ALTER TABLE regressor_life MODIFY COMMENT 'One line for each event of a regressor';

ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected, drift or drift_end',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS rival 'digest of what it was judged against',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS loss 'pinball loss on those jobs',
    COMMENT COLUMN IF EXISTS rival_loss 'of its rival on the same',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS drift_ratio 'measured / predicted',
    COMMENT COLUMN IF EXISTS drifted 'the node, the type of nodes or the model, with its batch sizes, or all';

CREATE OR REPLACE VIEW regressors AS
SELECT l.target AS target, l.model_digest AS model_digest,
    multiIf(l.model_digest = c.model_digest, 'in_use', countIf(l.kind = 'promoted') > 0, 'former', countIf(l.kind = 'rejected') > 0, 'rejected', 'challenger') AS state,
    argMaxIf(l.family, l.sequence, l.family != '') AS family, if(countIf(l.kind IN ('trained', 'promoted')) > 0, minIf(l.at, l.kind IN ('trained', 'promoted')), NULL) AS trained_at,
    if(countIf(l.kind = 'promoted') > 0, maxIf(l.at, l.kind = 'promoted'), NULL) AS promoted_at, countIf(l.kind = 'promoted') AS promotions,
    argMax(l.examples, l.sequence) AS examples, argMax(l.settings, l.sequence) AS settings, argMax(l.median_absolute_ratio, l.sequence) AS median_absolute_ratio,
    argMax(l.coverage_ratio, l.sequence) AS coverage_ratio, argMax(l.judged_jobs, l.sequence) AS judged_jobs,
    countIf(l.kind = 'drift') AS drifts, argMaxIf(l.decided_by, l.sequence, l.decided_by != '') AS decided_by,
    argMaxIf(l.reason, l.sequence, l.kind NOT IN ('drift', 'drift_end')) AS reason
FROM regressor_life AS l
LEFT JOIN (SELECT target, argMax(model_digest, sequence) AS model_digest FROM regressor_promoted GROUP BY target) AS c ON c.target = l.target
GROUP BY l.target, l.model_digest, c.model_digest HAVING countIf(l.kind NOT IN ('drift', 'drift_end')) > 0
SETTINGS join_use_nulls = 0;

ALTER TABLE regressors MODIFY COMMENT 'One line for each regressor that was fitted for a target';

ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'epoch_time, startup_time or accuracy',
    COMMENT COLUMN IF EXISTS model_digest 'sha256; what courier regressor show takes',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger',
    COMMENT COLUMN IF EXISTS trained_at 'NULL: nobody told',
    COMMENT COLUMN IF EXISTS promoted_at 'last time that it was put in use',
    COMMENT COLUMN IF EXISTS promotions 'how often',
    COMMENT COLUMN IF EXISTS examples 'it was fitted on',
    COMMENT COLUMN IF EXISTS settings 'distinct ones among them',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS drifts 'alarms and corrections while it was in use',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS reason 'of what was last decided';

INSERT INTO schema_migrations SELECT 17, '0017_corrections.sql', now64(9, 'UTC');

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE job_ended ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.dataset AS dataset, s.user AS user,
    s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds,
        s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued',
            'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes),
        CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus,
        s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
        if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9,
        NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    if(ended AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1,
        NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus,
            argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
            argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds,
            sum(l.io_wait_seconds) AS io_wait_seconds,
            sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
            sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
            sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch,
            NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds,
                0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '',
            argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds),
                sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT 'One line for each submitted job';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'its name',
    COMMENT COLUMN IF EXISTS model 'what is trained',
    COMMENT COLUMN IF EXISTS dataset 'on which; empty: none was named',
    COMMENT COLUMN IF EXISTS user 'who submitted it',
    COMMENT COLUMN IF EXISTS submitted_at 'UTC; the SLO counts from here',
    COMMENT COLUMN IF EXISTS slo_seconds '0: it has none',
    COMMENT COLUMN IF EXISTS confidence 'of keeping the SLO, as asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted',
    COMMENT COLUMN IF EXISTS advised_batch_size '0: none was advised',
    COMMENT COLUMN IF EXISTS predicted_seconds 'start-up and all epochs, as answered',
    COMMENT COLUMN IF EXISTS predicted_accuracy '0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as answered, 0 to 1',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost',
    COMMENT COLUMN IF EXISTS run 'how often it was started',
    COMMENT COLUMN IF EXISTS nodes 'where it runs, or was advised to',
    COMMENT COLUMN IF EXISTS batch_size
        'with which it trains, or trained last; 0: it never started',
    COMMENT COLUMN IF EXISTS cpus 'processes',
    COMMENT COLUMN IF EXISTS epochs 'asked for; 0: chosen by Courier',
    COMMENT COLUMN IF EXISTS epochs_done 'in its last run',
    COMMENT COLUMN IF EXISTS accuracy 'last one told, 0 to 1',
    COMMENT COLUMN IF EXISTS started_at 'first start; NULL: never',
    COMMENT COLUMN IF EXISTS waited_seconds 'from the request to the first start',
    COMMENT COLUMN IF EXISTS ended 'nothing more is expected of it',
    COMMENT COLUMN IF EXISTS ended_at 'NULL: it has not',
    COMMENT COLUMN IF EXISTS end_reason 'why it ended, in words',
    COMMENT COLUMN IF EXISTS last_event_at 'last sign of it in the log',
    COMMENT COLUMN IF EXISTS run_seconds 'of its last run',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end',
    COMMENT COLUMN IF EXISTS met_slo 'finished within the SLO; NULL: no SLO, or not ended',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'mean duration of its epochs',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'share of its nodes\' processors that waited for disks during its epochs, weighted by duration',
    COMMENT COLUMN IF EXISTS neighbours 'mean number of other jobs beside it during its epochs',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of its processes in its epochs',
    COMMENT COLUMN IF EXISTS memory_bytes 'largest resident memory at an epoch\'s end',
    COMMENT COLUMN IF EXISTS warned_at 'first warning that the SLO is at risk; NULL: none',
    COMMENT COLUMN IF EXISTS warned_cause
        'cause of the last warning: slow_epochs, io_wait, neighbours, late_start or regressor';

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, s.dataset AS dataset,
    if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at,
    s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability,
        if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds,
        s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at,
        if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds,
    predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id)
    AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus,
    nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence
    LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch,
    max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id
    AND l.run = e.run
LEFT JOIN (SELECT job_id, run,
    argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out'
    GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size,
        s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT
    'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds
        'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting',
    COMMENT COLUMN IF EXISTS threshold
        'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, dataset, batch_size, cpus, nodes, duration_seconds, loss,
    accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes,
        job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio,
        job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'that its threads waited for storage, summed; NULL: the kernel does not tell',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'share of the time in which some task of the job waited for a CPU',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'in which some task of the job waited for storage',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'in which all of them that had work waited for storage',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'in which some task of the job waited for memory',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'which of cpu, memory and io its cgroup told; the others are of its process tree';

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, dataset, slo_seconds, elapsed_seconds,
    epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy,
        probability, confidence, threshold, nodes, regressors
FROM job_advice;

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus',
    COMMENT COLUMN IF EXISTS message 'the advice in a sentence',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'since the request',
    COMMENT COLUMN IF EXISTS epochs_done 'so far',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'assumed',
    COMMENT COLUMN IF EXISTS batch_size 'to run',
    COMMENT COLUMN IF EXISTS epochs 'that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that remain',
    COMMENT COLUMN IF EXISTS upper_bound_seconds 'that remain, with the confidence asked for',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so',
    COMMENT COLUMN IF EXISTS threshold
        'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW alternatives AS
SELECT at, job_id, 'request' AS origin, decision, model, dataset, slo_seconds,
    alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability,
        alternative.reason AS reason,
    s.batch_size AS chosen_batch_size, s.predicted_accuracy AS chosen_accuracy
FROM job_submitted AS s ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT at, job_id, 'advice', decision, model, dataset, slo_seconds, alternative.batch_size,
    alternative.cpus,
    alternative.epochs, alternative.predicted_seconds,
    alternative.predicted_accuracy, alternative.probability, alternative.reason,
    a.batch_size, a.predicted_accuracy
FROM job_advice AS a ARRAY JOIN alternatives AS alternative;

ALTER TABLE alternatives MODIFY COMMENT 'One line for each alternative of each answer and advice';

ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS origin
        'request: of the answer to a request; advice: while it waited or ran',
    COMMENT COLUMN IF EXISTS epochs 'or those that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'NULL: not known',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS reason 'why it was chosen or lost',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'predicted, of the one that was chosen';

INSERT INTO schema_migrations SELECT 18, '0018_dataset.sql', now64(9, 'UTC');

ALTER TABLE advice MODIFY COMMENT
    'One row for each advice for a waiting or running job.';

ALTER TABLE advice
    COMMENT COLUMN IF EXISTS at 'Time of the advice, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus.',
    COMMENT COLUMN IF EXISTS message 'The advice in a sentence.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'Time since the submission.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs that had ended.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Jobs on the node, this one included, that the prediction assumed.',
    COMMENT COLUMN IF EXISTS batch_size 'Advised batch size.',
    COMMENT COLUMN IF EXISTS cpus 'Advised number of processes.',
    COMMENT COLUMN IF EXISTS epochs 'Remaining epochs.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time until the end.',
    COMMENT COLUMN IF EXISTS upper_bound_seconds
        'Upper bound of the time until the end, at the confidence.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy at the end, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS regressors 'Digest of the regressor for each target.';

ALTER TABLE alternatives MODIFY COMMENT
    'One row for each alternative of each advice, including the answer to the request.';

ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS at 'Time of the advice, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS origin
        'request: the answer to a request; advice: a later one for a waiting or running job.',
    COMMENT COLUMN IF EXISTS decision
        'Decision of the advice: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the alternative.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the alternative.',
    COMMENT COLUMN IF EXISTS epochs
        'Epochs of the alternative; of a running job, the remaining ones.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS predicted_accuracy
        'Predicted accuracy, 0 to 1; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS reason 'Reason why the alternative was or was not chosen.',
    COMMENT COLUMN IF EXISTS chosen_batch_size 'Batch size of the chosen alternative.',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'Predicted accuracy of the chosen alternative.';

ALTER TABLE drifts MODIFY COMMENT
    'One row for each drift alarm and for each change of a correction.';

ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS at 'Time of the event, UTC.',
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS model_digest 'SHA-256 of the regressor that was in use.',
    COMMENT COLUMN IF EXISTS state
        'State of a correction: active, replaced (by a fit) or withdrawn; empty for an alarm.',
    COMMENT COLUMN IF EXISTS scope 'all, node, node_type or model.',
    COMMENT COLUMN IF EXISTS drifted
        'Node, node type or model (with its batch sizes) that drifted, or all.',
    COMMENT COLUMN IF EXISTS since_at 'Start of the first job that shows the drift, UTC.',
    COMMENT COLUMN IF EXISTS ratio
        'Measured / predicted time since then; 1 when a correction ends.',
    COMMENT COLUMN IF EXISTS ratio_low 'Lower end of the 95 % interval of the ratio.',
    COMMENT COLUMN IF EXISTS ratio_high 'Upper end of the 95 % interval of the ratio.',
    COMMENT COLUMN IF EXISTS before_ratio 'Ratio before the drift.',
    COMMENT COLUMN IF EXISTS jobs 'Jobs in the scope since then.',
    COMMENT COLUMN IF EXISTS rest_ratio 'Measured / predicted time of all other jobs.',
    COMMENT COLUMN IF EXISTS rest_jobs 'Number of all other jobs.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of epochs within the upper bound since then.',
    COMMENT COLUMN IF EXISTS known_changes 'Other changes of the cluster at that time.',
    COMMENT COLUMN IF EXISTS message 'The drift in a sentence.';

ALTER TABLE epochs MODIFY COMMENT
    'One row for each epoch of a job.';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'End of the epoch, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS epoch 'Number of the epoch, from 1.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS batch_size 'Samples per iteration.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS duration_seconds 'Duration of the epoch with its validation.',
    COMMENT COLUMN IF EXISTS loss 'Loss that the job reported.',
    COMMENT COLUMN IF EXISTS accuracy 'Accuracy on the validation set, 0 to 1.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Time-weighted number of jobs on the node, this one included.',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'Busy share of the processors of the node.',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'Share of the processors of the node that waited for storage.',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of the processes of the job.',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'Resident memory of the job at the end of the epoch.',
    COMMENT COLUMN IF EXISTS job_read_bytes 'Bytes read from storage.',
    COMMENT COLUMN IF EXISTS job_written_bytes 'Bytes written to storage.',
    COMMENT COLUMN IF EXISTS training_samples 'Samples of the training set.',
    COMMENT COLUMN IF EXISTS node_cores 'Logical processors of the node.',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'Sum over threads of the time that they waited for storage; NULL if the kernel does not measure it.',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'Share of the time in which at least one task of the job waited for a CPU.',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'Share of the time in which at least one task of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'Share of the time in which all runnable tasks of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'Share of the time in which at least one task of the job waited for memory.',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'Which of cpu, memory and io were measured by the cgroup; the others by the process tree.';

ALTER TABLE jobs MODIFY COMMENT
    'One row for each submitted job.';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC; the SLO counts from here.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS decision
        'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS advised_batch_size 'Advised batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds
        'Predicted time of start-up and all epochs in the answer.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    COMMENT COLUMN IF EXISTS run 'Number of starts of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes on which the job runs or was advised to run.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the last epoch; 0 if the job never started.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS epochs 'Requested epochs; 0 if Courier chooses them.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs of the last run.',
    COMMENT COLUMN IF EXISTS accuracy 'Last reported accuracy, 0 to 1.',
    COMMENT COLUMN IF EXISTS started_at
        'Time of the first start, UTC; NULL if the job never started.',
    COMMENT COLUMN IF EXISTS waited_seconds 'Time from the submission to the first start.',
    COMMENT COLUMN IF EXISTS ended 'Whether the job has ended.',
    COMMENT COLUMN IF EXISTS ended_at 'Time of the end, UTC; NULL if the job has not ended.',
    COMMENT COLUMN IF EXISTS end_reason 'Reason of the end in words.',
    COMMENT COLUMN IF EXISTS last_event_at 'Time of the last event of the job, UTC.',
    COMMENT COLUMN IF EXISTS run_seconds 'Duration of the last run.',
    COMMENT COLUMN IF EXISTS response_seconds 'Time from the submission to the end.',
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job finished within its SLO; NULL without an SLO or before the end.',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'Mean duration of an epoch.',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    COMMENT COLUMN IF EXISTS neighbours 'Mean number of other jobs on the node during the epochs.',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of the processes of the job in its epochs.',
    COMMENT COLUMN IF EXISTS memory_bytes 'Largest resident memory at the end of an epoch.',
    COMMENT COLUMN IF EXISTS warned_at
        'First warning that the SLO is at risk, UTC; NULL if there was none.',
    COMMENT COLUMN IF EXISTS warned_cause
        'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.';

ALTER TABLE moves MODIFY COMMENT
    'One row for each step of a change of a running job.';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS at 'Time of the step, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS move 'Identity of the change.',
    COMMENT COLUMN IF EXISTS outcome 'carried_out, kept, undone or refused.',
    COMMENT COLUMN IF EXISTS means 'control: between epochs; restart: the job was started again.',
    COMMENT COLUMN IF EXISTS from_batch_size 'Batch size before the change.',
    COMMENT COLUMN IF EXISTS to_batch_size 'Batch size after the change.',
    COMMENT COLUMN IF EXISTS epoch 'First epoch with the new batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS before_epoch_seconds 'Measured epoch time before the change.',
    COMMENT COLUMN IF EXISTS predicted_epoch_seconds 'Predicted epoch time with the change.',
    COMMENT COLUMN IF EXISTS unmoved_epoch_seconds 'Predicted epoch time without the change.',
    COMMENT COLUMN IF EXISTS after_epoch_seconds 'Measured epoch time after the change.',
    COMMENT COLUMN IF EXISTS epochs_measured 'Epochs that were measured after the change.',
    COMMENT COLUMN IF EXISTS gain_ratio 'Measured gain / predicted gain.',
    COMMENT COLUMN IF EXISTS reason 'Reason why the change was refused or undone.';

ALTER TABLE node_load MODIFY COMMENT
    'One row for each node and minute, kept for 400 days.';

ALTER TABLE node_load
    COMMENT COLUMN IF EXISTS node 'Name of the node.',
    COMMENT COLUMN IF EXISTS minute 'Start of the minute, UTC.',
    COMMENT COLUMN IF EXISTS samples 'Number of samples.',
    COMMENT COLUMN IF EXISTS cpu_ratio 'Mean busy share of the processors, 0 to 1.',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'Largest busy share of a sample.',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'Mean share of the processors that waited for storage.',
    COMMENT COLUMN IF EXISTS load_average 'Mean load average.',
    COMMENT COLUMN IF EXISTS cores 'Logical processors; NULL if the number is unknown.';

ALTER TABLE node_load_hourly MODIFY COMMENT
    'One row for each node and hour, kept for five years.';

ALTER TABLE node_load_hourly
    COMMENT COLUMN IF EXISTS node 'Name of the node.',
    COMMENT COLUMN IF EXISTS hour 'Start of the hour, UTC.',
    COMMENT COLUMN IF EXISTS samples 'Number of samples.',
    COMMENT COLUMN IF EXISTS cpu_ratio 'Mean busy share of the processors, 0 to 1.',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'Largest busy share of a sample.',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'Mean share of the processors that waited for storage.',
    COMMENT COLUMN IF EXISTS load_average 'Mean load average.',
    COMMENT COLUMN IF EXISTS cores 'Logical processors; NULL if the number is unknown.';

ALTER TABLE promises MODIFY COMMENT
    'One row for each job with an SLO that started as advised and finished or failed: the promise and its result.';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo for a promise; any other value is no promise.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability
        'Probability of meeting the SLO when it was promised, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time from the submission to the end.',
    COMMENT COLUMN IF EXISTS response_seconds
        'Measured time from the submission to the end of the last epoch.',
    COMMENT COLUMN IF EXISTS kept 'Whether the job finished within its SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the promise.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the promise.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS promised_at
        'Time of the answer, or of the advice that ended the wait, UTC.';

ALTER TABLE regressor_life MODIFY COMMENT
    'One row for each event of a regressor.';

ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS at 'Time of the event, UTC.',
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected, drift or drift_end.',
    COMMENT COLUMN IF EXISTS model_digest
        'SHA-256 of the regressor file, as courier regressor show takes it.',
    COMMENT COLUMN IF EXISTS family 'Family of the regressor.',
    COMMENT COLUMN IF EXISTS examples 'Examples of the fit.',
    COMMENT COLUMN IF EXISTS settings 'Distinct configurations among the examples.',
    COMMENT COLUMN IF EXISTS median_absolute_ratio
        'Median of |error| / truth on held-out examples.',
    COMMENT COLUMN IF EXISTS r2 'Coefficient of determination on held-out examples.',
    COMMENT COLUMN IF EXISTS fit_seconds 'Duration of the fit.',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request.',
    COMMENT COLUMN IF EXISTS reason 'Reason of the event in words.',
    COMMENT COLUMN IF EXISTS rival 'Digest of the regressor with which it was compared.',
    COMMENT COLUMN IF EXISTS judged_jobs 'Jobs of the comparison.',
    COMMENT COLUMN IF EXISTS judged_settings 'Distinct configurations of the comparison.',
    COMMENT COLUMN IF EXISTS judged_level 'Significance level of the comparison.',
    COMMENT COLUMN IF EXISTS loss 'Pinball loss on the jobs of the comparison.',
    COMMENT COLUMN IF EXISTS rival_loss 'Pinball loss of the other regressor on the same jobs.',
    COMMENT COLUMN IF EXISTS loss_difference_low
        'Lower end of the interval of the difference in loss.',
    COMMENT COLUMN IF EXISTS loss_difference_high
        'Upper end of the interval of the difference in loss.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of the compared jobs within the upper bound.',
    COMMENT COLUMN IF EXISTS rival_coverage_ratio 'The same share for the other regressor.',
    COMMENT COLUMN IF EXISTS drift_ratio 'Measured / predicted time.',
    COMMENT COLUMN IF EXISTS drifted
        'Node, node type or model (with its batch sizes) that drifted, or all.',
    COMMENT COLUMN IF EXISTS event_id 'Identity of the event.',
    COMMENT COLUMN IF EXISTS sequence 'Sequence of the event in its stream.';

ALTER TABLE regressors MODIFY COMMENT
    'One row for each regressor that was fitted for a target.';

ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS model_digest
        'SHA-256 of the regressor file, as courier regressor show takes it.',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger.',
    COMMENT COLUMN IF EXISTS family 'Family of the regressor.',
    COMMENT COLUMN IF EXISTS trained_at 'Time of the fit, UTC; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS promoted_at 'Time of the last promotion, UTC.',
    COMMENT COLUMN IF EXISTS promotions 'Number of promotions.',
    COMMENT COLUMN IF EXISTS examples 'Examples of the fit.',
    COMMENT COLUMN IF EXISTS settings 'Distinct configurations among the examples.',
    COMMENT COLUMN IF EXISTS median_absolute_ratio
        'Median of |error| / truth on held-out examples.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of the compared jobs within the upper bound.',
    COMMENT COLUMN IF EXISTS judged_jobs 'Jobs of the comparison.',
    COMMENT COLUMN IF EXISTS drifts 'Alarms and corrections while it was in use.',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request.',
    COMMENT COLUMN IF EXISTS reason 'Reason of the last decision in words.';

ALTER TABLE warnings MODIFY COMMENT
    'One row for each warning that an SLO is at risk, and for each time that a warning ended.';

ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS at 'Time of the warning, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS cleared 'Whether the risk has passed.',
    COMMENT COLUMN IF EXISTS cause
        'slow_epochs, io_wait, neighbours, foreign, late_start or regressor.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO without a change, 0 to 1.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time until the end.',
    COMMENT COLUMN IF EXISTS left_seconds 'Time that the SLO leaves; negative if it is over.',
    COMMENT COLUMN IF EXISTS action 'Change that would meet the SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of that change.',
    COMMENT COLUMN IF EXISTS saved_probability 'Probability of meeting the SLO with that change.',
    COMMENT COLUMN IF EXISTS accuracy_loss 'Accuracy that the change costs; negative if it gains.',
    COMMENT COLUMN IF EXISTS message 'The warning in a sentence.';

INSERT INTO schema_migrations SELECT 19, '0019_comments.sql', now64(9, 'UTC');

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.dataset AS dataset, s.user AS user,
    s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds,
        s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued',
            'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes),
        CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus,
        s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
        if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9,
        NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    toBool(state = 'finished' AND greatest(p.epochs_done, e.epochs_done) < e.epochs
        AND (s.slo_seconds = 0 OR response_seconds <= s.slo_seconds)) AS incomplete,
    if(state IN ('finished', 'failed') AND NOT incomplete AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1,
        NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus,
            argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
            argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds,
            sum(l.io_wait_seconds) AS io_wait_seconds,
            sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
            sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
            sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch,
            NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds,
                0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '',
            argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds),
                sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, epochs, epochs_done,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT
    'One row for each submitted job.';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC; the SLO counts from here.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS decision
        'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS advised_batch_size 'Advised batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds
        'Predicted time of start-up and all epochs in the answer.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    COMMENT COLUMN IF EXISTS run 'Number of starts of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes on which the job runs or was advised to run.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the last epoch; 0 if the job never started.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS epochs 'Requested epochs; 0 if Courier chooses them.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs of the last run.',
    COMMENT COLUMN IF EXISTS accuracy 'Last reported accuracy, 0 to 1.',
    COMMENT COLUMN IF EXISTS started_at
        'Time of the first start, UTC; NULL if the job never started.',
    COMMENT COLUMN IF EXISTS waited_seconds 'Time from the submission to the first start.',
    COMMENT COLUMN IF EXISTS ended 'Whether the job has ended.',
    COMMENT COLUMN IF EXISTS ended_at 'Time of the end, UTC; NULL if the job has not ended.',
    COMMENT COLUMN IF EXISTS end_reason 'Reason of the end in words.',
    COMMENT COLUMN IF EXISTS last_event_at 'Time of the last event of the job, UTC.',
    COMMENT COLUMN IF EXISTS run_seconds 'Duration of the last run.',
    COMMENT COLUMN IF EXISTS response_seconds 'Time from the submission to the end.',
    COMMENT COLUMN IF EXISTS incomplete
        'Whether the job finished, not after its deadline, with fewer epochs than it should have.',
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job met its SLO; NULL without an SLO, before the end, or if the job was cancelled, lost or incomplete.',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'Mean duration of an epoch.',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    COMMENT COLUMN IF EXISTS neighbours 'Mean number of other jobs on the node during the epochs.',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of the processes of the job in its epochs.',
    COMMENT COLUMN IF EXISTS memory_bytes 'Largest resident memory at the end of an epoch.',
    COMMENT COLUMN IF EXISTS warned_at
        'First warning that the SLO is at risk, UTC; NULL if there was none.',
    COMMENT COLUMN IF EXISTS warned_cause
        'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.';

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, s.dataset AS dataset,
    if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at,
    s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability,
        if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds,
        s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at,
        if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds,
    predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id)
    AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, epochs_done, batch_size, cpus,
    nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence
    LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch,
    max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id
    AND l.run = e.run
LEFT JOIN (SELECT job_id, run,
    argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out'
    GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND NOT (e.outcome = 'finished'
        AND greatest(l.epoch, e.epochs_done) < e.epochs AND response_seconds <= s.slo_seconds) AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size,
        s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT
    'One row for each job with an SLO that started as advised and finished or failed, without incomplete jobs: the promise and its result.';

ALTER TABLE promises
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo for a promise; any other value is no promise.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability
        'Probability of meeting the SLO when it was promised, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time from the submission to the end.',
    COMMENT COLUMN IF EXISTS response_seconds
        'Measured time from the submission to the end of the last epoch.',
    COMMENT COLUMN IF EXISTS kept 'Whether the job finished within its SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the promise.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the promise.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS promised_at
        'Time of the answer, or of the advice that ended the wait, UTC.';

INSERT INTO schema_migrations SELECT 20, '0020_incomplete.sql', now64(9, 'UTC');

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS metric LowCardinality(String) AFTER accuracy;

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS metric_value Nullable(Float64) AFTER metric;

ALTER TABLE job_epoch
    COMMENT COLUMN IF EXISTS metric
        'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    COMMENT COLUMN IF EXISTS metric_value 'Value of metric as printed, such as 91.5 for 91.5 %.';

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, dataset, batch_size, cpus, nodes, duration_seconds, loss,
    accuracy, metric, metric_value, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes,
        job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio,
        job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT
    'One row for each epoch of a job.';

ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'End of the epoch, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS epoch 'Number of the epoch, from 1.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS batch_size 'Samples per iteration.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS duration_seconds 'Duration of the epoch with its validation.',
    COMMENT COLUMN IF EXISTS loss 'Loss that the job reported.',
    COMMENT COLUMN IF EXISTS accuracy 'Accuracy on the validation set, 0 to 1.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Time-weighted number of jobs on the node, this one included.',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'Busy share of the processors of the node.',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'Share of the processors of the node that waited for storage.',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of the processes of the job.',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'Resident memory of the job at the end of the epoch.',
    COMMENT COLUMN IF EXISTS job_read_bytes 'Bytes read from storage.',
    COMMENT COLUMN IF EXISTS job_written_bytes 'Bytes written to storage.',
    COMMENT COLUMN IF EXISTS training_samples 'Samples of the training set.',
    COMMENT COLUMN IF EXISTS node_cores 'Logical processors of the node.',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'Sum over threads of the time that they waited for storage; NULL if the kernel does not measure it.',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'Share of the time in which at least one task of the job waited for a CPU.',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'Share of the time in which at least one task of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'Share of the time in which all runnable tasks of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'Share of the time in which at least one task of the job waited for memory.',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'Which of cpu, memory and io were measured by the cgroup; the others by the process tree.',
    COMMENT COLUMN IF EXISTS metric
        'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    COMMENT COLUMN IF EXISTS metric_value 'Value of metric as printed, such as 91.5 for 91.5 %.';

INSERT INTO schema_migrations SELECT 21, '0021_metric.sql', now64(9, 'UTC');

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS limit_seconds Float64 AFTER heartbeat_seconds;

ALTER TABLE job_started
    COMMENT COLUMN IF EXISTS limit_seconds
        'Time limit of the batch system, from the start of the job; 0 if there is none.';

INSERT INTO schema_migrations SELECT 22, '0022_limit.sql', now64(9, 'UTC');

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

INSERT INTO schema_migrations SELECT 23, '0023_cpus.sql', now64(9, 'UTC');

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

INSERT INTO schema_migrations SELECT 24, '0024_moves.sql', now64(9, 'UTC');

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.job_id Array(String);

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.from_cpus Array(UInt32);

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS loans.to_cpus Array(UInt32);

ALTER TABLE job_advice
    COMMENT COLUMN IF EXISTS loans.job_id
        'Running jobs that lend CPUs, so that the queued job may start.',
    COMMENT COLUMN IF EXISTS loans.from_cpus 'CPUs of each of them before the loan.',
    COMMENT COLUMN IF EXISTS loans.to_cpus 'CPUs of each of them during the loan.';

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

INSERT INTO schema_migrations SELECT 25, '0025_loans.sql', now64(9, 'UTC');

ALTER TABLE job_risk
    COMMENT COLUMN IF EXISTS cleared
        'True if the risk is over: the probability is above the confidence again, or the loss no longer rises.';

ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS cause
        'slow_epochs, io_wait, neighbours, foreign, late_start, regressor or diverging.';

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.dataset AS dataset, s.user AS user,
    s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds,
        s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued',
            'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes),
        CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus,
        s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
        if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9,
        NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    toBool(state = 'finished' AND greatest(p.epochs_done, e.epochs_done) < e.epochs
        AND (s.slo_seconds = 0 OR response_seconds <= s.slo_seconds)) AS incomplete,
    if(state IN ('finished', 'failed') AND NOT incomplete AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1,
        NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus,
            argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
            argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds,
            sum(l.io_wait_seconds) AS io_wait_seconds,
            sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
            sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
            sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch,
            NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds,
                0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '',
            argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds),
                sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, epochs, epochs_done,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(r.cause, sequence) AS cause FROM job_risk AS r
    WHERE NOT cleared AND r.cause != 'diverging' GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT
    'One row for each submitted job.';

ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC; the SLO counts from here.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS decision
        'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS advised_batch_size 'Advised batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds
        'Predicted time of start-up and all epochs in the answer.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    COMMENT COLUMN IF EXISTS run 'Number of starts of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes on which the job runs or was advised to run.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the last epoch; 0 if the job never started.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS epochs 'Requested epochs; 0 if Courier chooses them.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs of the last run.',
    COMMENT COLUMN IF EXISTS accuracy 'Last reported accuracy, 0 to 1.',
    COMMENT COLUMN IF EXISTS started_at
        'Time of the first start, UTC; NULL if the job never started.',
    COMMENT COLUMN IF EXISTS waited_seconds 'Time from the submission to the first start.',
    COMMENT COLUMN IF EXISTS ended 'Whether the job has ended.',
    COMMENT COLUMN IF EXISTS ended_at 'Time of the end, UTC; NULL if the job has not ended.',
    COMMENT COLUMN IF EXISTS end_reason 'Reason of the end in words.',
    COMMENT COLUMN IF EXISTS last_event_at 'Time of the last event of the job, UTC.',
    COMMENT COLUMN IF EXISTS run_seconds 'Duration of the last run.',
    COMMENT COLUMN IF EXISTS response_seconds 'Time from the submission to the end.',
    COMMENT COLUMN IF EXISTS incomplete
        'Whether the job finished, not after its deadline, with fewer epochs than it should have.',
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job met its SLO; NULL without an SLO, before the end, or if the job was cancelled, lost or incomplete.',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'Mean duration of an epoch.',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    COMMENT COLUMN IF EXISTS neighbours 'Mean number of other jobs on the node during the epochs.',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of the processes of the job in its epochs.',
    COMMENT COLUMN IF EXISTS memory_bytes 'Largest resident memory at the end of an epoch.',
    COMMENT COLUMN IF EXISTS warned_at
        'First warning that the SLO is at risk, UTC; NULL if there was none.',
    COMMENT COLUMN IF EXISTS warned_cause
        'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.';

INSERT INTO schema_migrations SELECT 26, '0026_diverging.sql', now64(9, 'UTC');

ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS purpose
        '"lent", "returned", "at_risk", "left_over", "foreign_load" or "saved"; empty for other moves.';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS purpose
        'lent, returned, at_risk, left_over, foreign_load or saved; empty for a change of the batch size.';

INSERT INTO schema_migrations SELECT 27, '0027_saved.sql', now64(9, 'UTC');

ALTER TABLE job_moved
    COMMENT COLUMN IF EXISTS outcome
        '"applied", "carried_out", "kept", "undone", "refused" or "dry_run"';

ALTER TABLE moves
    COMMENT COLUMN IF EXISTS outcome
        'applied (the CPUs have changed), carried_out, kept, undone, refused or, if moves are not turned on, dry_run.';

INSERT INTO schema_migrations SELECT 28, '0028_applied.sql', now64(9, 'UTC');
