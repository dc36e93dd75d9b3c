-- Coverage of the upper bound under a drift.

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS coverage_ratio Nullable(Float64);
