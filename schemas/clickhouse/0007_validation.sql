-- The size of the validation set, which determines which accuracies are indistinguishable.

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS validation_samples UInt64;
