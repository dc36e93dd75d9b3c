-- What does a batch size cost, and what does it bring?
SELECT model, batch_size, cpus, count() AS epochs, round(avg(duration_seconds), 2) AS epoch_seconds, round(max(accuracy), 3) AS best_accuracy
FROM epochs
GROUP BY model, batch_size, cpus
ORDER BY model, batch_size, cpus
