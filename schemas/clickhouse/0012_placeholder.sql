-- Holds the number that another change takes; the view is there already.
CREATE VIEW IF NOT EXISTS epochs AS SELECT 1 AS one;
