-- Drift: since when jobs deviate from their predictions, and which scope explains most of it.

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
) ENGINE = MergeTree ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;
