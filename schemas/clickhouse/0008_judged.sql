-- Challengers and their comparison with the champion.

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
) ENGINE = MergeTree ORDER BY (target, at)
SETTINGS non_replicated_deduplication_window = 1000;

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
