-- What else was considered for a running job, and why did it lose?
SELECT batch_size, round(predicted_seconds, 2) AS predicted, reason
FROM alternatives
WHERE job_id = 'morning'
ORDER BY at DESC, batch_size
LIMIT 2
