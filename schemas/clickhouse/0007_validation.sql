-- How many samples an accuracy is of: that says which accuracies are alike.

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS validation_samples UInt64;
