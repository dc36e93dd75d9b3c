-- One table per event type. Columns and their order equal those of the Go structs
-- (schemas/tables.go); a test compares them. Each table has a deduplication window, so that a
-- repeated insert of a batch has no effect. Every statement can be repeated: after a crash the
-- migration starts again.

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
) ENGINE = MergeTree ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

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
) ENGINE = MergeTree ORDER BY (job_id, run, at)
SETTINGS non_replicated_deduplication_window = 1000;

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
) ENGINE = MergeTree ORDER BY (job_id, run, epoch)
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
    batch_size UInt32,
    cpus UInt32,
    epochs UInt32,
    training_samples UInt64,
    nodes Array(LowCardinality(String))
) ENGINE = MergeTree ORDER BY (job_id, run, at)
SETTINGS non_replicated_deduplication_window = 1000;

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
) ENGINE = MergeTree ORDER BY (job_id, at)
SETTINGS non_replicated_deduplication_window = 1000;

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
) ENGINE = MergeTree PARTITION BY toYYYYMM(at) ORDER BY (node, at)
TTL toDateTime(at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 1000;

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
) ENGINE = MergeTree ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS regressor_rejected (
    event_id String,
    at DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    sequence UInt64,
    target LowCardinality(String),
    model_digest String,
    reason String
) ENGINE = MergeTree ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;

-- Progress per stream: the tables contain every event up to this sequence, and possibly some later
-- ones. The row with the highest sequence of a stream counts.
CREATE TABLE IF NOT EXISTS log_position (
    stream LowCardinality(String),
    sequence UInt64,
    inserted_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree(sequence) ORDER BY stream;
