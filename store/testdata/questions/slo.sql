-- Did the jobs keep their SLO with the batch size that was advised?
SELECT job_id, advised_batch_size, slo_seconds, round(predicted_seconds, 1) AS predicted, round(response_seconds, 1) AS measured, state, met_slo
FROM jobs
ORDER BY submitted_at
