-- Holds the number that another change takes.
CREATE VIEW IF NOT EXISTS placeholder AS SELECT 1 AS one;
