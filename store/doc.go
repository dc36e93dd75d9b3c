// Package store writes the event log into ClickHouse tables, and reads events back from them.
//
// # Use
//
// Open connects to a ClickHouse database, and New creates a store. Run migrates the database
// and then writes every event of the streams JOB, NODE, REGRESSOR and ADVICE into the table of
// its type, until its context ends. NewHistory reads the events of jobs back, as the structs
// that were published. schemas/clickhouse defines the tables and views, for queries in SQL.
//
// # Guarantees
//
// Every event of the log is in its table exactly once, and counts exactly once in the roll-ups,
// regardless of which process crashes, and when. Three mechanisms ensure this:
//
//   - A batch is an exact range of a stream and has the same rows when it is written again
//     (bus.ConsumeBatch). The deduplication token of an insert is derived from the range.
//     ClickHouse skips a block with a known token, in the table and in each roll-up
//     separately, so a repeated insert completes an interrupted one.
//   - Before an insert, the store drops events whose event_id is already in the table:
//     duplicates from outside the duplicate window of NATS. A row with the same sequence is not
//     a duplicate but comes from an earlier attempt of the same batch, so a repeated batch has
//     the same block and the same token.
//   - A batch is acknowledged when all its rows are in their tables. log_position records the
//     sequence up to which that holds, and History reads no further. Its result is a prefix of
//     the log without gaps.
//
// While ClickHouse is unavailable, the log keeps the events, and the store retries the current
// batch with a growing delay. A database belongs to one event log. The streams are written
// concurrently, the tables of one batch one after the other. All methods are safe for
// concurrent use.
//
// # Verification
//
// Verify compares the log with the tables at any time: each event with its row, and the roll-ups
// with their tables. It reports missing rows, duplicate rows, and rows without an event in the log. Its
// memory does not grow with the log: it compares at most a quarter of a million events at a time.
//
// Rebuild restores the tables of a stream from the log: their writer deletes the rows that the log
// still has, and writes them again.
//
// # Permissions
//
// The ClickHouse user needs INSERT, SELECT, CREATE TABLE and CREATE VIEW on the database, and
// CREATE DATABASE if the database does not exist. A rebuild, a batch that is repeated, and the reload
// of a table with an unreadable part need ALTER DELETE, TRUNCATE and DROP TABLE. Verify only reads.
//
// # Observability
//
// The metrics courier_store_* count rows, duplicates and errors, and measure statements and the
// age of the oldest event that is not in its table yet. For the progress of the tables:
// SELECT stream, max(sequence) FROM log_position GROUP BY stream.
//
// # Tests
//
// storetest.New creates a database for a test, on a real engine or on the server that
// COURIER_TEST_CLICKHOUSE names.
package store
