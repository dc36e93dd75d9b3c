-- The tables, roll-ups and views of a database: migration 1. Further migrations have the next
-- numbers, and only add to these. Every statement may be repeated, because a migration that a crash
-- interrupted starts again. courier store schema prints the statements, also in the form for a
-- cluster, which store/cluster_schema.go derives from them.

-- ## Tables
--
-- One table per event type. Columns and their order equal those of the Go structs (tables.go); a
-- test compares them. Each table has a deduplication window, so that a repeated insert of a batch
-- has no effect.

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
    request_workers Array(UInt32) COMMENT 'Numbers of workers to choose from; empty: a single one.',
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
    workers UInt32 COMMENT 'Number of workers, each with these CPUs; 0: a single one.',
    predicted_seconds Nullable(Float64),
    predicted_accuracy Nullable(Float64),
    probability Nullable(Float64),
    `alternatives.batch_size` Array(UInt32),
    `alternatives.cpus` Array(UInt32),
    `alternatives.workers` Array(UInt32),
    `alternatives.epochs` Array(UInt32),
    `alternatives.predicted_seconds` Array(Nullable(Float64)),
    `alternatives.predicted_accuracy` Array(Nullable(Float64)),
    `alternatives.probability` Array(Nullable(Float64)),
    `alternatives.reason` Array(LowCardinality(String)),
    verdict LowCardinality(String),
    `loans.job_id` Array(String) COMMENT 'Running jobs that lend CPUs, so that the job may start.',
    `loans.from_cpus` Array(UInt32) COMMENT 'CPUs of each of them before the loan.',
    `loans.to_cpus` Array(UInt32) COMMENT 'CPUs of each of them during the loan.',
    may_stop_early Bool COMMENT 'Whether the job may end by itself with fewer epochs than it has.',
    target_accuracy Float64 COMMENT 'Accuracy at which the job may end, 0 to 1; 0: none.'
) ENGINE = MergeTree
ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS job_started (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    model LowCardinality(String),
    dataset LowCardinality(String),
    batch_size UInt32,
    cpus UInt32,
    workers UInt32 COMMENT 'Number of workers, each with these CPUs; 0: a single one.',
    loaders UInt32 COMMENT 'Number of data loaders of each worker; 0: none, or unknown.',
    epochs UInt32,
    training_samples UInt64,
    nodes Array(LowCardinality(String)),
    node_cores UInt32,
    heartbeat_seconds Float64,
    limit_seconds Float64 COMMENT 'Time limit of the batch system, from the start of the job; 0 if there is none.',
    command LowCardinality(String),
    user LowCardinality(String),
    moves Array(LowCardinality(String)),
    nodes_cores Array(UInt32),
    nodes_cpu_model Array(LowCardinality(String)),
    nodes_speed_operations_per_second Array(Float64)
) ENGINE = MergeTree
ORDER BY (job_id, run, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS job_epoch (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    model LowCardinality(String),
    dataset LowCardinality(String),
    batch_size UInt32,
    cpus UInt32,
    workers UInt32 COMMENT 'Number of workers, each with these CPUs; 0: a single one.',
    loaders UInt32 COMMENT 'Number of data loaders of each worker; 0: none, or unknown.',
    epochs UInt32,
    training_samples UInt64,
    nodes Array(LowCardinality(String)),
    epoch UInt32,
    duration_seconds Float64,
    duration_source LowCardinality(String),
    following_epochs UInt32,
    node_cores UInt32,
    loss Nullable(Float64),
    accuracy Nullable(Float64),
    metric LowCardinality(String) COMMENT 'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    metric_value Nullable(Float64) COMMENT 'Value of metric as printed, such as 91.5 for 91.5 %.',
    concurrent_jobs Nullable(Float64),
    node_cpu_ratio Nullable(Float64),
    node_io_wait_ratio Nullable(Float64),
    node_load_average Nullable(Float64),
    job_cpu_seconds Nullable(Float64),
    job_memory_bytes Nullable(Float64),
    job_read_bytes Nullable(Float64),
    job_written_bytes Nullable(Float64),
    validation_samples UInt64,
    job_cpu_pressure_ratio Nullable(Float64),
    job_io_pressure_ratio Nullable(Float64),
    job_io_full_pressure_ratio Nullable(Float64),
    job_memory_pressure_ratio Nullable(Float64),
    job_memory_full_pressure_ratio Nullable(Float64),
    input_wait_seconds Nullable(Float64),
    evaluation_seconds Nullable(Float64),
    checkpoint_seconds Nullable(Float64),
    peak_memory_bytes Nullable(Float64),
    device LowCardinality(String),
    devices UInt32
) ENGINE = MergeTree
ORDER BY (job_id, run, epoch)
SETTINGS non_replicated_deduplication_window = 1000;

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
    dataset LowCardinality(String),
    batch_size UInt32,
    cpus UInt32,
    workers UInt32 COMMENT 'Number of workers, each with these CPUs; 0: a single one.',
    loaders UInt32 COMMENT 'Number of data loaders of each worker; 0: none, or unknown.',
    epochs UInt32,
    training_samples UInt64,
    nodes Array(LowCardinality(String))
) ENGINE = MergeTree
ORDER BY (job_id, run, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS job_advice (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    cause_sequence UInt64,
    message String,
    model LowCardinality(String),
    dataset LowCardinality(String),
    nodes Array(LowCardinality(String)),
    slo_seconds Float64,
    elapsed_seconds Float64,
    confidence Float64,
    epochs_done UInt32,
    regressors Map(String, String),
    decision LowCardinality(String),
    action LowCardinality(String),
    concurrent_jobs Float64,
    processes Float64,
    batch_size UInt32,
    cpus UInt32,
    workers UInt32 COMMENT 'Number of workers, each with these CPUs; 0: a single one.',
    loaders UInt32 COMMENT 'Number of data loaders of each worker; 0: none, or unknown.',
    epochs UInt32,
    predicted_seconds Nullable(Float64),
    upper_bound_seconds Nullable(Float64),
    predicted_accuracy Nullable(Float64),
    probability Nullable(Float64),
    `alternatives.batch_size` Array(UInt32),
    `alternatives.cpus` Array(UInt32),
    `alternatives.workers` Array(UInt32),
    `alternatives.epochs` Array(UInt32),
    `alternatives.predicted_seconds` Array(Nullable(Float64)),
    `alternatives.predicted_accuracy` Array(Nullable(Float64)),
    `alternatives.probability` Array(Nullable(Float64)),
    `alternatives.reason` Array(LowCardinality(String)),
    `loans.job_id` Array(String) COMMENT 'Running jobs that lend CPUs, so that the queued job may start.',
    `loans.from_cpus` Array(UInt32) COMMENT 'CPUs of each of them before the loan.',
    `loans.to_cpus` Array(UInt32) COMMENT 'CPUs of each of them during the loan.'
) ENGINE = MergeTree
ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS job_risk (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    cause_sequence UInt64,
    cleared Bool COMMENT 'True if the risk is over: the probability is above the confidence again, or the loss no longer rises.',
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
) ENGINE = MergeTree
ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS job_moved (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    job_id String,
    run UInt32,
    cause_sequence UInt64,
    move LowCardinality(String) COMMENT '"batch_size", "cpus" or "loaders"',
    outcome LowCardinality(String) COMMENT '"applied", "carried_out", "kept", "undone", "refused" or "dry_run"',
    means LowCardinality(String) COMMENT '"control", "restart", "weight", "cap", "docker" or "kubernetes"',
    from_batch_size UInt32,
    to_batch_size UInt32,
    epoch UInt32,
    predicted_seconds Nullable(Float64),
    unmoved_seconds Nullable(Float64),
    predicted_epoch_seconds Nullable(Float64),
    unmoved_epoch_seconds Nullable(Float64),
    before_epoch_seconds Nullable(Float64),
    after_epoch_seconds Nullable(Float64) COMMENT 'Measured mean time of the first epochs with the move; in a dry run, after the advice.',
    epochs_measured UInt32,
    gain_ratio Nullable(Float64),
    reason String,
    from_cpus UInt32 COMMENT 'CPUs before a move of CPUs; 0 for other moves.',
    to_cpus UInt32 COMMENT 'Advised CPUs; 0 for other moves.',
    purpose LowCardinality(String) COMMENT '"lent", "returned", "at_risk", "left_over", "foreign_load" or "saved"; "input" of loaders; empty for other moves.',
    for_job String COMMENT 'Job that the CPUs are lent to; empty if there is none or if there are several.',
    rule LowCardinality(String) COMMENT 'Reason of the policy, such as "share", "left over" or "yield"; empty if it gave none.',
    before_probability Nullable(Float64) COMMENT 'Predicted probability of meeting the SLO without the move.',
    after_probability Nullable(Float64) COMMENT 'Predicted probability of meeting the SLO with the move.',
    slack_seconds Nullable(Float64) COMMENT 'Time to the deadline minus the upper bound of the remaining time before the move.',
    free_cpus UInt32 COMMENT 'CPUs that no job and no other work used before the move.',
    rejected_cpus Array(UInt32) COMMENT 'Other numbers of CPUs of the request that were turned down.',
    rejected_reasons Array(String) COMMENT 'Why, for each of rejected_cpus.',
    bottleneck LowCardinality(String) COMMENT 'What limited the job before the move, as in its status; empty if that is unknown.',
    from_loaders UInt32 COMMENT 'Data loaders before a move of loaders; 0 for other moves.',
    to_loaders UInt32 COMMENT 'Advised data loaders; 0 for other moves.'
) ENGINE = MergeTree
ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

-- Samples are kept for 90 days, their minutes for 400 days, and their hours for five years.
--
-- A part of samples stores its columns in one file up to 128 MiB. With the default of 10 MiB each
-- batch and each merge created a hundred files, which cost the file system as much time as the rest
-- of the insert.
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
    network_transmitted_bytes_per_second Nullable(Float64),
    cpu_model LowCardinality(String),
    speed_operations_per_second Nullable(Float64),
    io_full_pressure_ratio Nullable(Float64),
    memory_full_pressure_ratio Nullable(Float64)
) ENGINE = MergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (node, at)
TTL toDateTime(at) + toIntervalDay(90)
SETTINGS non_replicated_deduplication_window = 1000, min_bytes_for_wide_part = 134217728;

CREATE TABLE IF NOT EXISTS regressor_trained (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    model_digest String,
    manifest_digest String,
    examples UInt64,
    configurations UInt64,
    held_out_error Float64,
    scored_runs UInt64,
    served_score Float64,
    refit_score Float64,
    fit_seconds Float64,
    reason String,
    since_sequence UInt64
) ENGINE = MergeTree
ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS regressor_promoted (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    revision UInt64,
    model_digest String,
    manifest_digest String,
    examples UInt64,
    configurations UInt64,
    held_out_error Float64,
    scored_runs UInt64,
    served_score Float64,
    refit_score Float64,
    fit_seconds Float64,
    reason String,
    decided_by LowCardinality(String),
    replaced String,
    since_sequence UInt64
) ENGINE = MergeTree
ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS regressor_rejected (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    model_digest String,
    reason String
) ENGINE = MergeTree
ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS regressor_drift (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    cause_sequence UInt64,
    model_digest String,
    scope LowCardinality(String),
    model LowCardinality(String),
    dataset LowCardinality(String),
    since_at DateTime64(9, 'UTC'),
    ratio Float64,
    before_ratio Float64,
    jobs UInt32,
    statistic Float64,
    message String,
    state LowCardinality(String),
    node_type LowCardinality(String),
    batch_size_from UInt32,
    batch_size_to UInt32,
    ratio_low Nullable(Float64),
    ratio_high Nullable(Float64)
) ENGINE = MergeTree
ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;

-- Progress per stream: the tables contain every event up to this sequence, and possibly some later
-- ones. The row with the highest sequence of a stream counts.
CREATE TABLE IF NOT EXISTS log_position (
    stream LowCardinality(String),
    sequence UInt64,
    inserted_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree(sequence)
ORDER BY stream;

-- ## Roll-ups
--
-- Filled by inserts into their source; for repeated batches see store/rollup.go. The columns of the
-- views are qualified, because an unqualified cpu_ratio would be the aggregate of that name.

CREATE TABLE IF NOT EXISTS node_minute (
    node LowCardinality(String),
    minute DateTime('UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    cpu_ratio AggregateFunction(avg, Nullable(Float64)),
    cpu_ratio_max SimpleAggregateFunction(max, Nullable(Float64)),
    io_wait_ratio AggregateFunction(avg, Nullable(Float64)),
    load_average AggregateFunction(avg, Nullable(Float64)),
    cores SimpleAggregateFunction(max, UInt32)
) ENGINE = AggregatingMergeTree
ORDER BY (node, minute)
TTL minute + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS node_minute_view TO node_minute
AS SELECT
    s.node AS node,
    toStartOfMinute(s.at) AS minute,
    toUInt64(count()) AS samples,
    avgState(s.cpu_ratio) AS cpu_ratio,
    max(s.cpu_ratio) AS cpu_ratio_max,
    avgState(s.io_wait_ratio) AS io_wait_ratio,
    avgState(s.load_average) AS load_average,
    max(s.cores) AS cores
FROM node_sample AS s
GROUP BY
    node,
    minute;

CREATE TABLE IF NOT EXISTS node_hour (
    node LowCardinality(String),
    hour DateTime('UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    cpu_ratio AggregateFunction(avg, Nullable(Float64)),
    cpu_ratio_max SimpleAggregateFunction(max, Nullable(Float64)),
    io_wait_ratio AggregateFunction(avg, Nullable(Float64)),
    load_average AggregateFunction(avg, Nullable(Float64)),
    cores SimpleAggregateFunction(max, UInt32)
) ENGINE = AggregatingMergeTree
ORDER BY (node, hour)
TTL hour + toIntervalYear(5)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS node_hour_view TO node_hour
AS SELECT
    m.node AS node,
    toStartOfHour(m.minute) AS hour,
    sum(m.samples) AS samples,
    avgMergeState(m.cpu_ratio) AS cpu_ratio,
    max(m.cpu_ratio_max) AS cpu_ratio_max,
    avgMergeState(m.io_wait_ratio) AS io_wait_ratio,
    avgMergeState(m.load_average) AS load_average,
    max(m.cores) AS cores
FROM node_minute AS m
GROUP BY
    node,
    hour;

-- Aggregates of the epochs of a run, so that the view of jobs does not read epochs. Shares are
-- stored as seconds of an epoch's duration, which can be summed, together with the seconds of the
-- epochs in which they were measured.
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
) ENGINE = AggregatingMergeTree
ORDER BY (job_id, run)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS job_run_view TO job_run
AS SELECT
    e.job_id AS job_id,
    e.run AS run,
    max(e.sequence) AS sequence,
    max(e.at) AS last_at,
    toUInt64(count()) AS epochs,
    max(e.epoch) AS epoch_max,
    argMaxState(e.epoch, e.sequence) AS epoch,
    argMaxState(e.batch_size, e.sequence) AS batch_size,
    argMaxState(e.cpus, e.sequence) AS cpus,
    argMaxState(e.accuracy, e.sequence) AS accuracy,
    sum(e.duration_seconds) AS epoch_seconds,
    sum(ifNull(e.node_io_wait_ratio, 0) * e.duration_seconds) AS io_wait_seconds,
    sumIf(e.duration_seconds, e.node_io_wait_ratio IS NOT NULL) AS io_wait_of_seconds,
    sum(ifNull(e.concurrent_jobs, 0) * e.duration_seconds) AS concurrent_job_seconds,
    sumIf(e.duration_seconds, e.concurrent_jobs IS NOT NULL) AS concurrent_of_seconds,
    sum(e.job_cpu_seconds) AS job_cpu_seconds,
    max(e.job_memory_bytes) AS job_memory_bytes
FROM job_epoch AS e
GROUP BY
    job_id,
    run;

-- ## Views
--
-- For people: DESCRIBE prints the comments of a view and its columns. A view follows those that it
-- reads.

-- One row per submitted job. An end is valid until the next start, and "lost" only until the job's
-- next event, which "found" is.
CREATE VIEW IF NOT EXISTS jobs (
    job_id String COMMENT 'Name of the job.',
    model LowCardinality(String) COMMENT 'Model that is trained.',
    dataset LowCardinality(String) COMMENT 'Dataset on which the model is trained; empty if none was named.',
    user LowCardinality(String) COMMENT 'User who submitted the job.',
    submitted_at DateTime64(9, 'UTC') COMMENT 'Time of the submission, UTC; the SLO counts from here.',
    slo_seconds Float64 COMMENT 'SLO, from the submission; 0 if there is none.',
    confidence Float64 COMMENT 'Requested probability of meeting the SLO, 0 to 1.',
    decision LowCardinality(String) COMMENT 'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    advised_batch_size UInt32 COMMENT 'Advised batch size; 0 if there is none.',
    predicted_seconds Nullable(Float64) COMMENT 'Predicted time of start-up and all epochs in the answer.',
    predicted_accuracy Nullable(Float64) COMMENT 'Predicted accuracy in the answer, 0 to 1.',
    probability Nullable(Float64) COMMENT 'Probability of meeting the SLO in the answer, 0 to 1.',
    state String COMMENT 'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    run UInt32 COMMENT 'Number of starts of the job.',
    nodes Array(String) COMMENT 'Nodes on which the job runs or was advised to run.',
    batch_size UInt32 COMMENT 'Batch size of the last epoch; 0 if the job never started.',
    cpus UInt32 COMMENT 'CPUs of each worker.',
    workers UInt32 COMMENT 'Number of workers, each with these CPUs.',
    epochs UInt32 COMMENT 'Requested epochs; 0 if Courier chooses them.',
    epochs_done UInt32 COMMENT 'Epochs of the last run.',
    accuracy Nullable(Float64) COMMENT 'Last reported accuracy, 0 to 1.',
    started_at Nullable(DateTime64(9, 'UTC')) COMMENT 'Time of the first start, UTC; NULL if the job never started.',
    waited_seconds Nullable(Float64) COMMENT 'Time from the submission to the first start.',
    ended Bool COMMENT 'Whether the job has ended.',
    ended_at Nullable(DateTime64(9, 'UTC')) COMMENT 'Time of the end, UTC; NULL if the job has not ended.',
    end_reason String COMMENT 'Reason of the end in words.',
    last_event_at DateTime64(9, 'UTC') COMMENT 'Time of the last event of the job, UTC.',
    run_seconds Nullable(Float64) COMMENT 'Duration of the last run.',
    response_seconds Nullable(Float64) COMMENT 'Time from the submission to the end of the last epoch, or of a run with fewer epochs.',
    incomplete Nullable(Bool) COMMENT 'Whether the job finished, not after its deadline, with fewer epochs than it should have. A job that may stop early or reached its target accuracy should not have more.',
    met_slo Nullable(Bool) COMMENT 'Whether the job met its SLO, at the end of its last epoch; NULL without an SLO, before the end, or if the job was cancelled, lost or incomplete.',
    mean_epoch_seconds Nullable(Float64) COMMENT 'Mean duration of an epoch.',
    io_wait_ratio Nullable(Float64) COMMENT 'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    neighbours Nullable(Float64) COMMENT 'Mean number of other jobs on the node during the epochs.',
    cpu_seconds Nullable(Float64) COMMENT 'CPU time of the processes of the job in its epochs.',
    memory_bytes Nullable(Float64) COMMENT 'Largest resident memory at the end of an epoch.',
    warned_at Nullable(DateTime64(9, 'UTC')) COMMENT 'First warning that the SLO is at risk, UTC; NULL if there was none.',
    warned_cause String COMMENT 'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.'
) COMMENT 'One row for each submitted job.'
AS SELECT
    s.job_id AS job_id,
    s.model AS model,
    s.dataset AS dataset,
    s.user AS user,
    s.at AS submitted_at,
    s.slo_seconds AS slo_seconds,
    s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size,
    s.predicted_seconds AS predicted_seconds,
    s.predicted_accuracy AS predicted_accuracy,
    s.probability AS probability,
    multiIf(
        e.job_id != '' AND e.run >= p.run AND e.outcome != 'found'
            AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome,
        p.run > 0, 'running',
        s.verdict = 'refused', 'refused',
        s.verdict = 'queued' AND a.job_id = '', 'queued',
        'submitted'
    ) AS state,
    p.run AS run,
    if(p.started_nodes != '', splitByChar(',', p.started_nodes), CAST(s.nodes, 'Array(String)')) AS nodes,
    p.batch_size AS batch_size,
    p.cpus AS cpus,
    greatest(p.workers, 1) AS workers,
    s.epochs AS epochs,
    p.epochs_done AS epochs_done,
    p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
    if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1000000000., NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at,
    if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(
        ended,
        dateDiff('nanosecond', s.at, if((p.epochs_done >= e.epochs) AND (p.epochs > 0), least(p.trained_at, e.at), e.at))
        / 1000000000.,
        NULL
    ) AS response_seconds,
    toBool(
        state = 'finished' AND greatest(p.epochs_done, e.epochs_done) < e.epochs
        AND (s.slo_seconds = 0 OR response_seconds <= s.slo_seconds)
        AND NOT (
            (e.epochs_done > 0) AND (e.reason = '')
            AND (s.may_stop_early OR ((s.target_accuracy > 0) AND (ifNull(e.accuracy, 0) >= s.target_accuracy)))
        )
    ) AS incomplete,
    if(
        state IN ('finished', 'failed') AND NOT incomplete AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds),
        NULL
    ) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, (p.concurrent_job_seconds / p.concurrent_of_seconds) - 1, NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds,
    p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at,
    w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN
(
    SELECT
        l.job_id AS job_id,
        max(l.run) AS run,
        max(l.sequence) AS sequence,
        max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size,
        argMax(l.cpus, l.sequence) AS cpus,
        argMaxIf(l.workers, l.run, l.started_nodes != '') AS workers,
        argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
        argMaxIf(l.at, (l.run, l.sequence), l.epochs > 0) AS trained_at,
        argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs,
        sum(l.epoch_seconds) AS epoch_seconds,
        sum(l.io_wait_seconds) AS io_wait_seconds,
        sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
        sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
        sum(l.job_cpu_seconds) AS job_cpu_seconds,
        max(l.job_memory_bytes) AS job_memory_bytes
    FROM
    (
        SELECT
            job_id,
            run,
            sequence,
            at,
            at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes,
            batch_size,
            cpus,
            workers,
            0 AS epoch,
            NULL AS accuracy,
            0 AS epochs,
            0. AS epoch_seconds,
            0. AS io_wait_seconds,
            0. AS io_wait_of_seconds,
            0. AS concurrent_job_seconds,
            0. AS concurrent_of_seconds,
            NULL AS job_cpu_seconds,
            NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT
            r.job_id,
            r.run,
            max(r.sequence),
            max(r.last_at),
            max(r.last_at),
            '',
            argMaxMerge(r.batch_size),
            argMaxMerge(r.cpus),
            0,
            argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy),
            sum(r.epochs),
            sum(r.epoch_seconds),
            sum(r.io_wait_seconds),
            sum(r.io_wait_of_seconds),
            sum(r.concurrent_job_seconds),
            sum(r.concurrent_of_seconds),
            sum(r.job_cpu_seconds),
            max(r.job_memory_bytes)
        FROM job_run AS r
        GROUP BY
            r.job_id,
            r.run
    ) AS l
    GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN
(
    SELECT
        job_id,
        run,
        outcome,
        reason,
        sequence,
        at,
        epochs,
        epochs_done,
        accuracy,
        duration_seconds
    FROM job_ended
    ORDER BY sequence DESC
    LIMIT 1 BY job_id
) AS e ON e.job_id = s.job_id
LEFT JOIN
(
    SELECT DISTINCT job_id
    FROM job_advice
    WHERE action = 'start'
) AS a ON a.job_id = s.job_id
LEFT JOIN
(
    SELECT
        job_id,
        min(at) AS warned_at,
        argMax(r.cause, sequence) AS cause
    FROM job_risk AS r
    WHERE (NOT cleared) AND (r.cause != 'diverging')
    GROUP BY job_id
) AS w ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

CREATE VIEW IF NOT EXISTS epochs (
    at DateTime64(9, 'UTC') COMMENT 'End of the epoch, UTC.',
    job_id String COMMENT 'Name of the job.',
    run UInt32 COMMENT 'Number of the start of the job, from 1.',
    epoch UInt32 COMMENT 'Number of the epoch, from 1.',
    model LowCardinality(String) COMMENT 'Model that is trained.',
    dataset LowCardinality(String) COMMENT 'Dataset on which the model is trained; empty if none was named.',
    batch_size UInt32 COMMENT 'Samples per iteration.',
    cpus UInt32 COMMENT 'CPUs of each worker.',
    workers UInt32 COMMENT 'Number of workers, each with these CPUs.',
    nodes Array(LowCardinality(String)) COMMENT 'Nodes of the job.',
    duration_seconds Float64 COMMENT 'Duration of the epoch with its validation.',
    loss Nullable(Float64) COMMENT 'Loss that the job reported.',
    accuracy Nullable(Float64) COMMENT 'Accuracy on the validation set, 0 to 1.',
    metric LowCardinality(String) COMMENT 'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    metric_value Nullable(Float64) COMMENT 'Value of metric as printed, such as 91.5 for 91.5 %.',
    concurrent_jobs Nullable(Float64) COMMENT 'Time-weighted number of jobs on the node, this one included.',
    node_cpu_ratio Nullable(Float64) COMMENT 'Busy share of the processors of the node.',
    node_io_wait_ratio Nullable(Float64) COMMENT 'Share of the processors of the node that waited for storage.',
    job_cpu_seconds Nullable(Float64) COMMENT 'CPU time of the processes of the job.',
    job_memory_bytes Nullable(Float64) COMMENT 'Resident memory of the job at the end of the epoch.',
    job_read_bytes Nullable(Float64) COMMENT 'Bytes read from storage.',
    job_written_bytes Nullable(Float64) COMMENT 'Bytes written to storage.',
    training_samples UInt64 COMMENT 'Samples of the training set.',
    node_cores UInt32 COMMENT 'Logical processors of the node.',
    job_cpu_pressure_ratio Nullable(Float64) COMMENT 'Share of the time in which at least one task of the job waited for a CPU.',
    job_io_pressure_ratio Nullable(Float64) COMMENT 'Share of the time in which at least one task of the job waited for storage.',
    job_io_full_pressure_ratio Nullable(Float64) COMMENT 'Share of the time in which all runnable tasks of the job waited for storage.',
    job_memory_pressure_ratio Nullable(Float64) COMMENT 'Share of the time in which at least one task of the job waited for memory.',
    input_wait_seconds Nullable(Float64) COMMENT 'Time in which the training waited for batches; NULL if it was not measured inside.',
    evaluation_seconds Nullable(Float64) COMMENT 'Time of the evaluations.',
    checkpoint_seconds Nullable(Float64) COMMENT 'Time in which checkpoints were saved.',
    peak_memory_bytes Nullable(Float64) COMMENT 'Highest memory so far: allocated on the fullest device or, without one, resident in the process.',
    device LowCardinality(String) COMMENT 'Name of the first device, such as a GPU; empty if none is used.',
    devices UInt32 COMMENT 'Number of devices that the training uses.'
) COMMENT 'One row for each epoch of a job.'
AS SELECT
    at,
    job_id,
    run,
    epoch,
    model,
    dataset,
    batch_size,
    cpus,
    greatest(workers, 1) AS workers,
    nodes,
    duration_seconds,
    loss,
    accuracy,
    metric,
    metric_value,
    concurrent_jobs,
    node_cpu_ratio,
    node_io_wait_ratio,
    job_cpu_seconds,
    job_memory_bytes,
    job_read_bytes,
    job_written_bytes,
    training_samples,
    node_cores,
    job_cpu_pressure_ratio,
    job_io_pressure_ratio,
    job_io_full_pressure_ratio,
    job_memory_pressure_ratio,
    input_wait_seconds,
    evaluation_seconds,
    checkpoint_seconds,
    peak_memory_bytes,
    device,
    devices
FROM job_epoch;

CREATE VIEW IF NOT EXISTS advice (
    at DateTime64(9, 'UTC') COMMENT 'Time of the advice, UTC.',
    job_id String COMMENT 'Name of the job.',
    decision LowCardinality(String) COMMENT 'meets_slo, best_effort, exploring or weighted.',
    action LowCardinality(String) COMMENT 'start, wait, refuse, keep, change_batch_size, change_cpus or change_loaders.',
    message String COMMENT 'The advice in a sentence.',
    model LowCardinality(String) COMMENT 'Model that is trained.',
    dataset LowCardinality(String) COMMENT 'Dataset on which the model is trained; empty if none was named.',
    slo_seconds Float64 COMMENT 'SLO, from the submission; 0 if there is none.',
    elapsed_seconds Float64 COMMENT 'Time since the submission.',
    epochs_done UInt32 COMMENT 'Epochs that had ended.',
    concurrent_jobs Float64 COMMENT 'Jobs on the node, this one included, that the prediction assumed.',
    batch_size UInt32 COMMENT 'Advised batch size.',
    cpus UInt32 COMMENT 'Advised CPUs of each worker.',
    workers UInt32 COMMENT 'Number of workers, each with these CPUs.',
    epochs UInt32 COMMENT 'Remaining epochs.',
    predicted_seconds Nullable(Float64) COMMENT 'Predicted time until the end.',
    upper_bound_seconds Nullable(Float64) COMMENT 'Upper bound of the time until the end, at the confidence.',
    predicted_accuracy Nullable(Float64) COMMENT 'Predicted accuracy at the end, 0 to 1.',
    probability Nullable(Float64) COMMENT 'Probability of meeting the SLO, 0 to 1.',
    confidence Float64 COMMENT 'Requested probability of meeting the SLO, 0 to 1.',
    nodes Array(LowCardinality(String)) COMMENT 'Nodes of the job.',
    regressors Map(String, String) COMMENT 'Digest of the regressor for each target.'
) COMMENT 'One row for each advice for a waiting or running job.'
AS SELECT
    at,
    job_id,
    decision,
    action,
    message,
    model,
    dataset,
    slo_seconds,
    elapsed_seconds,
    epochs_done,
    concurrent_jobs,
    batch_size,
    cpus,
    greatest(workers, 1) AS workers,
    epochs,
    predicted_seconds,
    upper_bound_seconds,
    predicted_accuracy,
    probability,
    confidence,
    nodes,
    regressors
FROM job_advice;

CREATE VIEW IF NOT EXISTS alternatives (
    at DateTime64(9, 'UTC') COMMENT 'Time of the advice, UTC.',
    job_id String COMMENT 'Name of the job.',
    origin String COMMENT 'request: the answer to a request; advice: a later one for a waiting or running job.',
    decision LowCardinality(String) COMMENT 'Decision of the advice: meets_slo, best_effort, exploring or weighted.',
    model LowCardinality(String) COMMENT 'Model that is trained.',
    dataset LowCardinality(String) COMMENT 'Dataset on which the model is trained; empty if none was named.',
    slo_seconds Float64 COMMENT 'SLO, from the submission; 0 if there is none.',
    batch_size UInt32 COMMENT 'Batch size of the alternative.',
    cpus UInt32 COMMENT 'CPUs of each worker.',
    workers UInt32 COMMENT 'Number of workers, each with these CPUs.',
    epochs UInt32 COMMENT 'Epochs of the alternative; of a running job, the remaining ones.',
    predicted_seconds Nullable(Float64) COMMENT 'Predicted time; NULL if it is unknown.',
    predicted_accuracy Nullable(Float64) COMMENT 'Predicted accuracy, 0 to 1; NULL if it is unknown.',
    probability Nullable(Float64) COMMENT 'Probability of meeting the SLO, 0 to 1.',
    reason LowCardinality(String) COMMENT 'Reason why the alternative was or was not chosen.',
    chosen_batch_size UInt32 COMMENT 'Batch size of the chosen alternative.',
    chosen_accuracy Nullable(Float64) COMMENT 'Predicted accuracy of the chosen alternative.'
) COMMENT 'One row for each alternative of each advice, including the answer to the request.'
AS SELECT
    at,
    job_id,
    'request' AS origin,
    decision,
    model,
    dataset,
    slo_seconds,
    alternative.batch_size AS batch_size,
    alternative.cpus AS cpus,
    greatest(alternative.workers, 1) AS workers,
    alternative.epochs AS epochs,
    alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy,
    alternative.probability AS probability,
    alternative.reason AS reason,
    s.batch_size AS chosen_batch_size,
    s.predicted_accuracy AS chosen_accuracy
FROM job_submitted AS s
ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT
    at,
    job_id,
    'advice',
    decision,
    model,
    dataset,
    slo_seconds,
    alternative.batch_size,
    alternative.cpus,
    greatest(alternative.workers, 1),
    alternative.epochs,
    alternative.predicted_seconds,
    alternative.predicted_accuracy,
    alternative.probability,
    alternative.reason,
    a.batch_size,
    a.predicted_accuracy
FROM job_advice AS a
ARRAY JOIN alternatives AS alternative;

-- A promise is the answer to a request, or the advice that ended the job's queueing time. One row
-- per promise whose job started as advised and ended by itself, with the promised and the measured
-- values. A job that Courier moved to another batch size keeps its promise. A job that finished with
-- fewer epochs than it should have, or without recognized epochs, is no evidence that its promise
-- was kept. The SLO applies from the request to the end of the last epoch.
CREATE VIEW IF NOT EXISTS promises (
    job_id String COMMENT 'Name of the job.',
    user LowCardinality(String) COMMENT 'User who submitted the job.',
    model LowCardinality(String) COMMENT 'Model that is trained.',
    dataset LowCardinality(String) COMMENT 'Dataset on which the model is trained; empty if none was named.',
    decision String COMMENT 'meets_slo for a promise; any other value is no promise.',
    submitted_at DateTime64(9, 'UTC') COMMENT 'Time of the submission, UTC.',
    confidence Float64 COMMENT 'Requested probability of meeting the SLO, 0 to 1.',
    probability Nullable(Float64) COMMENT 'Probability of meeting the SLO and the target accuracy when it was promised, 0 to 1.',
    slo_seconds Float64 COMMENT 'SLO, from the submission; 0 if there is none.',
    predicted_seconds Nullable(Float64) COMMENT 'Predicted time from the submission to the end.',
    response_seconds Float64 COMMENT 'Measured time from the submission to the end of the last epoch.',
    kept Bool COMMENT 'Whether the job finished within its SLO and, if there is one, with its target accuracy.',
    batch_size UInt32 COMMENT 'Batch size of the promise.',
    cpus UInt32 COMMENT 'CPUs of each worker of the promise.',
    workers UInt32 COMMENT 'Number of workers, each with these CPUs.',
    nodes Array(LowCardinality(String)) COMMENT 'Nodes of the job.',
    promised_at DateTime64(9, 'UTC') COMMENT 'Time of the answer, or of the advice that ended the wait, UTC.'
) COMMENT 'One row for each job with an SLO that started as advised and finished or failed, without incomplete jobs: the promise and its result.'
AS SELECT
    s.job_id AS job_id,
    s.user AS user,
    s.model AS model,
    s.dataset AS dataset,
    if(a.job_id != '', a.decision, s.decision) AS decision,
    s.at AS submitted_at,
    s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability,
    s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if((l.epoch >= e.epochs) AND (e.epochs > 0), l.at, e.at)) / 1000000000. AS response_seconds,
    toBool(
        (e.outcome = 'finished')
            AND (response_seconds <= s.slo_seconds)
            AND ((s.target_accuracy = 0) OR (ifNull(e.accuracy, 0) >= s.target_accuracy))
    ) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size,
    e.cpus AS cpus,
    greatest(e.workers, 1) AS workers,
    e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN
(
    SELECT
        job_id,
        at,
        decision,
        batch_size,
        cpus,
        workers,
        probability,
        elapsed_seconds,
        predicted_seconds
    FROM job_advice
    WHERE action = 'start'
    ORDER BY sequence ASC
    LIMIT 1 BY job_id
) AS a ON a.job_id = s.job_id
INNER JOIN
(
    SELECT
        job_id,
        run,
        outcome,
        reason,
        at,
        epochs,
        epochs_done,
        accuracy,
        batch_size,
        cpus,
        workers,
        nodes
    FROM job_ended
    WHERE outcome IN ('finished', 'failed')
    ORDER BY sequence ASC
    LIMIT 1 BY job_id
) AS e ON e.job_id = s.job_id
LEFT JOIN
(
    SELECT
        job_id,
        run,
        max(epoch_max) AS epoch,
        max(last_at) AS at
    FROM job_run
    GROUP BY
        job_id,
        run
) AS l ON (l.job_id = s.job_id) AND (l.run = e.run)
LEFT JOIN
(
    SELECT
        job_id,
        run,
        argMin(from_batch_size, sequence) AS batch_size
    FROM job_moved
    WHERE outcome = 'carried_out'
    GROUP BY
        job_id,
        run
) AS m ON (m.job_id = s.job_id) AND (m.run = e.run)
WHERE s.slo_seconds > 0
    AND NOT (
        e.outcome = 'finished' AND greatest(l.epoch, e.epochs_done) < e.epochs
        AND response_seconds <= s.slo_seconds
        AND NOT (
            (e.epochs_done > 0) AND (e.reason = '')
            AND (s.may_stop_early OR ((s.target_accuracy > 0) AND (ifNull(e.accuracy, 0) >= s.target_accuracy)))
        )
    )
    AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND has(
        [0, if(m.batch_size > 0, m.batch_size, e.batch_size)],
        if(a.job_id != '', a.batch_size, s.batch_size)
    )
    AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
    AND greatest(e.workers, 1) = greatest(if(a.job_id != '', a.workers, s.workers), 1)
SETTINGS join_use_nulls = 0;

-- Warnings of a rising loss do not depend on the SLO, so they are no warnings that it is at risk.
CREATE VIEW IF NOT EXISTS warnings (
    at DateTime64(9, 'UTC') COMMENT 'Time of the warning, UTC.',
    job_id String COMMENT 'Name of the job.',
    run UInt32 COMMENT 'Number of the start of the job, from 1.',
    cleared Bool COMMENT 'Whether the risk has passed.',
    cause LowCardinality(String) COMMENT 'slow_epochs, io_wait, neighbours, foreign, late_start, regressor or diverging.',
    probability Float64 COMMENT 'Probability of meeting the SLO without a change, 0 to 1.',
    confidence Float64 COMMENT 'Requested probability of meeting the SLO, 0 to 1.',
    predicted_seconds Float64 COMMENT 'Predicted time until the end.',
    left_seconds Float64 COMMENT 'Time that the SLO leaves; negative if it is over.',
    action LowCardinality(String) COMMENT 'Change that would meet the SLO.',
    batch_size UInt32 COMMENT 'Batch size of that change.',
    saved_probability Nullable(Float64) COMMENT 'Probability of meeting the SLO with that change.',
    accuracy_loss Nullable(Float64) COMMENT 'Accuracy that the change costs; negative if it gains.',
    message String COMMENT 'The warning in a sentence.'
) COMMENT 'One row for each warning that an SLO is at risk, and for each time that a warning ended.'
AS SELECT
    at,
    job_id,
    run,
    cleared,
    cause,
    probability,
    confidence,
    predicted_seconds,
    left_seconds,
    action,
    batch_size,
    saved_probability,
    accuracy_loss,
    message
FROM job_risk;

CREATE VIEW IF NOT EXISTS moves (
    at DateTime64(9, 'UTC') COMMENT 'Time of the step, UTC.',
    job_id String COMMENT 'Name of the job.',
    run UInt32 COMMENT 'Number of the start of the job, from 1.',
    cause_sequence UInt64 COMMENT 'Sequence of the event that caused the advice to move.',
    move LowCardinality(String) COMMENT 'batch_size, cpus or loaders.',
    outcome LowCardinality(String) COMMENT 'applied (the CPUs have changed), carried_out, kept, undone, refused or, if moves are not turned on, dry_run.',
    means LowCardinality(String) COMMENT 'control, restart, or for CPUs weight, cap, docker, kubernetes or restart.',
    purpose LowCardinality(String) COMMENT 'lent, returned, at_risk, left_over, foreign_load, saved or, for loaders, input; empty for a change of the batch size.',
    for_job String COMMENT 'Job that the CPUs are lent to, if it is only one.',
    from_cpus UInt32 COMMENT 'CPUs before the change; 0 for a change of the batch size.',
    to_cpus UInt32 COMMENT 'CPUs after the change; 0 for a change of the batch size.',
    from_loaders UInt32 COMMENT 'Data loaders before the change; 0 for other changes.',
    to_loaders UInt32 COMMENT 'Data loaders after the change; 0 for other changes.',
    rule LowCardinality(String) COMMENT 'Reason of the policy; empty if it gave none.',
    before_probability Nullable(Float64) COMMENT 'Predicted probability of meeting the SLO without the change.',
    after_probability Nullable(Float64) COMMENT 'Predicted probability of meeting the SLO with the change.',
    slack_seconds Nullable(Float64) COMMENT 'Time to the deadline minus the upper bound of the remaining time before the change.',
    free_cpus UInt32 COMMENT 'CPUs of the node that were free before the change.',
    rejected_cpus Array(UInt32) COMMENT 'Other numbers of CPUs that were turned down.',
    rejected_reasons Array(String) COMMENT 'Why, for each of rejected_cpus.',
    bottleneck LowCardinality(String) COMMENT 'What limited the job before the change; empty if that is unknown.',
    predicted_seconds Nullable(Float64) COMMENT 'Predicted remaining time with the change.',
    unmoved_seconds Nullable(Float64) COMMENT 'Predicted remaining time without the change.',
    from_batch_size UInt32 COMMENT 'Batch size before the change.',
    to_batch_size UInt32 COMMENT 'Batch size after the change.',
    epoch UInt32 COMMENT 'First epoch with the change; 0 if there is none.',
    before_epoch_seconds Nullable(Float64) COMMENT 'Measured epoch time before the change.',
    predicted_epoch_seconds Nullable(Float64) COMMENT 'Predicted epoch time with the change.',
    unmoved_epoch_seconds Nullable(Float64) COMMENT 'Predicted epoch time without the change.',
    after_epoch_seconds Nullable(Float64) COMMENT 'Measured epoch time after the change; in a dry run, after the advice.',
    epochs_measured UInt32 COMMENT 'Epochs that were measured after the change.',
    gain_ratio Nullable(Float64) COMMENT 'Measured gain / predicted gain.',
    reason String COMMENT 'Reason why the change was refused or undone.'
) COMMENT 'One row for each step of a change of a running job.'
AS SELECT
    at,
    job_id,
    run,
    cause_sequence,
    move,
    outcome,
    means,
    purpose,
    for_job,
    from_cpus,
    to_cpus,
    from_loaders,
    to_loaders,
    rule,
    before_probability,
    after_probability,
    slack_seconds,
    free_cpus,
    rejected_cpus,
    rejected_reasons,
    bottleneck,
    predicted_seconds,
    unmoved_seconds,
    from_batch_size,
    to_batch_size,
    epoch,
    before_epoch_seconds,
    predicted_epoch_seconds,
    unmoved_epoch_seconds,
    after_epoch_seconds,
    epochs_measured,
    gain_ratio,
    reason
FROM job_moved;

-- An advice to start may be stored twice, after a restart of the advisor.
CREATE VIEW IF NOT EXISTS loans (
    at DateTime64(9, 'UTC') COMMENT 'Time of the admission, UTC.',
    job_id String COMMENT 'Name of the job that borrows.',
    was_queued Bool COMMENT 'Whether the job had waited in the queue.',
    lender_job_id String COMMENT 'Name of the job that lends.',
    from_cpus UInt32 COMMENT 'CPUs of the lender before the loan.',
    to_cpus UInt32 COMMENT 'CPUs of the lender during the loan.'
) COMMENT 'One row for each running job that lends CPUs to a job, so that this may start.'
AS SELECT
    at,
    job_id,
    was_queued,
    lender_job_id,
    from_cpus,
    to_cpus
FROM
(
    SELECT
        at,
        job_id,
        toBool(0) AS was_queued,
        loans.job_id AS lenders,
        loans.from_cpus AS all_from_cpus,
        loans.to_cpus AS all_to_cpus
    FROM job_submitted
    WHERE notEmpty(lenders)
    UNION ALL
    SELECT
        at,
        job_id,
        toBool(1) AS was_queued,
        loans.job_id AS lenders,
        loans.from_cpus AS all_from_cpus,
        loans.to_cpus AS all_to_cpus
    FROM job_advice
    WHERE (action = 'start') AND notEmpty(lenders)
    ORDER BY sequence ASC
    LIMIT 1 BY job_id
) AS l
ARRAY JOIN
    lenders AS lender_job_id,
    all_from_cpus AS from_cpus,
    all_to_cpus AS to_cpus;

CREATE VIEW IF NOT EXISTS node_load (
    node LowCardinality(String) COMMENT 'Name of the node.',
    minute DateTime('UTC') COMMENT 'Start of the minute, UTC.',
    samples UInt64 COMMENT 'Number of samples.',
    cpu_ratio Nullable(Float64) COMMENT 'Mean busy share of the processors, 0 to 1.',
    cpu_ratio_max Nullable(Float64) COMMENT 'Largest busy share of a sample.',
    io_wait_ratio Nullable(Float64) COMMENT 'Mean share of the processors that waited for storage.',
    load_average Nullable(Float64) COMMENT 'Mean load average.',
    cores Nullable(SimpleAggregateFunction(max, UInt32)) COMMENT 'Logical processors; NULL if the number is unknown.'
) COMMENT 'One row for each node and minute, kept for 400 days.'
AS SELECT
    m.node AS node,
    m.minute AS minute,
    sum(m.samples) AS samples,
    avgMerge(m.cpu_ratio) AS cpu_ratio,
    max(m.cpu_ratio_max) AS cpu_ratio_max,
    avgMerge(m.io_wait_ratio) AS io_wait_ratio,
    avgMerge(m.load_average) AS load_average,
    nullIf(max(m.cores), 0) AS cores
FROM node_minute AS m
GROUP BY
    node,
    minute;

CREATE VIEW IF NOT EXISTS node_load_hourly (
    node LowCardinality(String) COMMENT 'Name of the node.',
    hour DateTime('UTC') COMMENT 'Start of the hour, UTC.',
    samples UInt64 COMMENT 'Number of samples.',
    cpu_ratio Nullable(Float64) COMMENT 'Mean busy share of the processors, 0 to 1.',
    cpu_ratio_max Nullable(Float64) COMMENT 'Largest busy share of a sample.',
    io_wait_ratio Nullable(Float64) COMMENT 'Mean share of the processors that waited for storage.',
    load_average Nullable(Float64) COMMENT 'Mean load average.',
    cores Nullable(SimpleAggregateFunction(max, UInt32)) COMMENT 'Logical processors; NULL if the number is unknown.'
) COMMENT 'One row for each node and hour, kept for five years.'
AS SELECT
    h.node AS node,
    h.hour AS hour,
    sum(h.samples) AS samples,
    avgMerge(h.cpu_ratio) AS cpu_ratio,
    max(h.cpu_ratio_max) AS cpu_ratio_max,
    avgMerge(h.io_wait_ratio) AS io_wait_ratio,
    avgMerge(h.load_average) AS load_average,
    nullIf(max(h.cores), 0) AS cores
FROM node_hour AS h
GROUP BY
    node,
    hour;

-- One row per event of a regressor: trained, promoted, rejected, or drift. A value that the event
-- does not have is NULL, or '' for text. A rejection has the examples and the error of its fit. Only
-- the begin or change of a correction counts as a drift.
CREATE VIEW IF NOT EXISTS regressor_life (
    at DateTime64(9, 'UTC') COMMENT 'Time of the event, UTC.',
    target LowCardinality(String) COMMENT 'Predicted quantity: epoch_time, startup_time or accuracy.',
    kind String COMMENT 'trained, promoted, rejected, drift or drift_end.',
    model_digest String COMMENT 'SHA-256 of the regressor file, as courier regressor show takes it.',
    examples Nullable(UInt64) COMMENT 'Examples of the fit.',
    configurations Nullable(UInt64) COMMENT 'Distinct configurations among the examples.',
    held_out_error Nullable(Float64) COMMENT 'Mean of |error| / truth on held-out runs; of accuracies, mean of |error|.',
    fit_seconds Nullable(Float64) COMMENT 'Duration of the fit.',
    decided_by String COMMENT 'first, fit, correction or request.',
    reason String COMMENT 'Reason of the event in words.',
    replaced String COMMENT 'Digest of the regressor that a promotion replaced.',
    drift_ratio Nullable(Float64) COMMENT 'Measured / predicted time.',
    drifted String COMMENT 'Node type or model (with its batch sizes) that drifted, or all.',
    event_id String COMMENT 'Identity of the event.',
    sequence UInt64 COMMENT 'Sequence of the event in its stream.'
) COMMENT 'One row for each event of a regressor.'
AS SELECT
    at,
    target,
    'trained' AS kind,
    model_digest,
    toNullable(examples) AS examples,
    toNullable(configurations) AS configurations,
    toNullable(held_out_error) AS held_out_error,
    toNullable(fit_seconds) AS fit_seconds,
    '' AS decided_by,
    reason,
    '' AS replaced,
    CAST(NULL, 'Nullable(Float64)') AS drift_ratio,
    '' AS drifted,
    event_id,
    sequence
FROM regressor_trained
UNION ALL
SELECT
    at,
    target,
    'promoted',
    model_digest,
    toNullable(examples),
    toNullable(configurations),
    toNullable(held_out_error),
    toNullable(fit_seconds),
    decided_by,
    reason,
    replaced,
    NULL,
    '',
    event_id,
    sequence
FROM regressor_promoted
UNION ALL
SELECT
    e.at,
    e.target,
    'rejected',
    e.model_digest,
    if(f.event_id = '', NULL, f.examples),
    if(f.event_id = '', NULL, f.configurations),
    if(f.event_id = '', NULL, f.held_out_error),
    if(f.event_id = '', NULL, f.fit_seconds),
    '',
    e.reason,
    '',
    NULL,
    '',
    e.event_id,
    e.sequence
FROM regressor_rejected AS e
LEFT JOIN
(
    SELECT *
    FROM regressor_trained
    ORDER BY sequence DESC
    LIMIT 1 BY
        target,
        model_digest
) AS f ON (f.target = e.target) AND (f.model_digest = e.model_digest)
SETTINGS join_use_nulls = 0
UNION ALL
SELECT
    at,
    target,
    if((state IN ('replaced', 'withdrawn')), 'drift_end', 'drift'),
    model_digest,
    NULL,
    NULL,
    NULL,
    NULL,
    '',
    message,
    '',
    toNullable(ratio),
    concat(
        multiIf(scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if((scope = 'model') AND (dataset != ''), concat(' on ', dataset), ''),
        if((scope = 'model') AND (node_type != ''), concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')
    ),
    event_id,
    sequence
FROM regressor_drift;

CREATE VIEW IF NOT EXISTS regressors (
    target LowCardinality(String) COMMENT 'Predicted quantity: epoch_time, startup_time or accuracy.',
    model_digest String COMMENT 'SHA-256 of the regressor file, as courier regressor show takes it.',
    state String COMMENT 'in_use, former, rejected or trained.',
    trained_at Nullable(DateTime64(9, 'UTC')) COMMENT 'Time of the fit, UTC; NULL if it is unknown.',
    promoted_at Nullable(DateTime64(9, 'UTC')) COMMENT 'Time of the last promotion, UTC.',
    promotions UInt64 COMMENT 'Number of promotions.',
    examples Nullable(UInt64) COMMENT 'Examples of the fit.',
    configurations Nullable(UInt64) COMMENT 'Distinct configurations among the examples.',
    held_out_error Nullable(Float64) COMMENT 'Mean of |error| / truth on held-out runs; of accuracies, mean of |error|.',
    drifts UInt64 COMMENT 'Begins and changes of drift corrections while it was in use.',
    decided_by String COMMENT 'first, fit, correction or request.',
    reason String COMMENT 'Reason of the last decision in words.'
) COMMENT 'One row for each regressor that was fitted for a target.'
AS SELECT
    l.target AS target,
    l.model_digest AS model_digest,
    multiIf(
        l.model_digest = c.model_digest, 'in_use',
        countIf(l.kind = 'promoted') > 0, 'former',
        countIf(l.kind = 'rejected') > 0, 'rejected',
        'trained'
    ) AS state,
    if(countIf((l.kind IN ('trained', 'promoted'))) > 0, minIf(l.at, (l.kind IN ('trained', 'promoted'))), NULL) AS trained_at,
    if(countIf(l.kind = 'promoted') > 0, maxIf(l.at, l.kind = 'promoted'), NULL) AS promoted_at,
    countIf(l.kind = 'promoted') AS promotions,
    argMax(l.examples, l.sequence) AS examples,
    argMax(l.configurations, l.sequence) AS configurations,
    argMax(l.held_out_error, l.sequence) AS held_out_error,
    countIf(l.kind = 'drift') AS drifts,
    argMaxIf(l.decided_by, l.sequence, l.decided_by != '') AS decided_by,
    argMaxIf(l.reason, l.sequence, (l.kind NOT IN ('drift', 'drift_end'))) AS reason
FROM regressor_life AS l
LEFT JOIN
(
    SELECT
        target,
        argMax(model_digest, sequence) AS model_digest
    FROM regressor_promoted
    GROUP BY target
) AS c ON c.target = l.target
GROUP BY
    l.target,
    l.model_digest,
    c.model_digest
HAVING countIf(l.kind NOT IN ('drift', 'drift_end')) > 0
SETTINGS join_use_nulls = 0;

CREATE VIEW IF NOT EXISTS drifts (
    at DateTime64(9, 'UTC') COMMENT 'Time of the event, UTC.',
    target LowCardinality(String) COMMENT 'Predicted quantity: epoch_time, startup_time or accuracy.',
    model_digest String COMMENT 'SHA-256 of the regressor that was in use.',
    state LowCardinality(String) COMMENT 'State of the correction: active, replaced (by a fit) or withdrawn.',
    scope LowCardinality(String) COMMENT 'all, node_type or model.',
    drifted String COMMENT 'Node type or model (with its batch sizes) that drifted, or all.',
    since_at DateTime64(9, 'UTC') COMMENT 'Start of the first job that shows the drift, UTC.',
    ratio Float64 COMMENT 'Measured / predicted time since then; 1 when a correction ends.',
    ratio_low Nullable(Float64) COMMENT 'Lower end of the 95 % interval of the ratio.',
    ratio_high Nullable(Float64) COMMENT 'Upper end of the 95 % interval of the ratio.',
    before_ratio Float64 COMMENT 'Ratio before the drift.',
    jobs UInt32 COMMENT 'Jobs in the scope since then.',
    message String COMMENT 'The drift in a sentence.'
) COMMENT 'One row for each begin, change and end of a drift correction.'
AS SELECT
    at,
    target,
    model_digest,
    state,
    scope,
    concat(
        multiIf(scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if((scope = 'model') AND (dataset != ''), concat(' on ', dataset), ''),
        if((scope = 'model') AND (node_type != ''), concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')
    ) AS drifted,
    since_at,
    ratio,
    ratio_low,
    ratio_high,
    before_ratio,
    jobs,
    message
FROM regressor_drift;
