-- How often did the promise hold, by what was asked and promised?
SELECT confidence, decision, count() AS jobs, countIf(kept) AS kept_jobs, round(avg(kept), 2) AS kept_ratio,
    round(avg(probability), 2) AS mean_probability
FROM promises
GROUP BY confidence, decision ORDER BY confidence, decision
