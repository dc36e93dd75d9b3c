-- A part of samples stores its columns in one file up to 128 MiB. With the default of 10 MiB each
-- batch and each merge created a hundred files, which cost the file system as much time as the rest
-- of the insert.

ALTER TABLE node_sample MODIFY SETTING min_bytes_for_wide_part = 134217728;
