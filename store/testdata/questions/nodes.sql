-- How busy are the nodes?
SELECT node, sum(samples) AS samples, round(avg(cpu_ratio), 3) AS cpu_ratio, round(max(cpu_ratio_max), 3) AS busiest, round(avg(io_wait_ratio), 3) AS io_wait_ratio
FROM node_load
GROUP BY node
ORDER BY node
