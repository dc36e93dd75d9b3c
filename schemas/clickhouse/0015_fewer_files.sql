-- A part of samples keeps its columns in one file until it has 128 MiB. In the common
-- 10 MiB, each batch and each merge of some batches made a hundred files, and the file
-- system's work for them was as much as ClickHouse's own.

ALTER TABLE node_sample MODIFY SETTING min_bytes_for_wide_part = 134217728;
