-- How much slower is an epoch beside other jobs?
SELECT round(concurrent_jobs) AS jobs_at_once, count() AS epochs, round(median(duration_seconds), 2) AS epoch_seconds
FROM epochs
WHERE concurrent_jobs IS NOT NULL
GROUP BY jobs_at_once
ORDER BY jobs_at_once
