-- What was each job told while it ran?
SELECT job_id, epochs_done, action, round(elapsed_seconds + predicted_seconds, 1) AS predicted_end, slo_seconds, probability
FROM advice
ORDER BY job_id, at
