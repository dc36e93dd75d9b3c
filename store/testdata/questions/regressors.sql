-- What became of each regressor, and why?
SELECT target, kind, substring(model_digest, 1, 6) AS digest, examples, round(median_absolute_ratio, 3) AS median_error, decided_by,
    judged_jobs AS jobs, round(loss / rival_loss, 2) AS loss_ratio, coverage_ratio AS kept, drifted, reason
FROM regressor_life
ORDER BY target, at
