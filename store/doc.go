// Package store turns the event log into tables, and answers questions from
// them.
//
// # Use
//
// Open names a ClickHouse, New a follower of the log; Run migrates the database
// and then writes every event of the JOB, NODE, REGRESSOR and ADVICE streams into the
// table of its type, until its context ends. NewHistory reads the events of jobs
// back, as the same structs that were published. The tables and views are those
// of schemas/clickhouse; people ask them in SQL.
//
// # Promises
//
// Every event of the log is in its table once, and counts once in the roll-ups,
// whoever dies when. Three things together do it:
//
//   - A batch is an exact range of a stream that is the same when it is repeated
//     (bus.ConsumeBatch). Its inserts carry tokens made of that range, and
//     ClickHouse skips a block whose token it knows, in the table and in the
//     roll-up each for itself: an insert that died between the two is completed.
//   - Before an insert, events whose event_id is in the table already are dropped:
//     copies from beyond the time in which NATS recognises them. A row that has the
//     sequence of the batch's own event is no copy but this very batch, so that a
//     repeated batch makes the same block under the same token.
//   - A batch is acknowledged when all its tables have it. log_position says up to
//     where, and History reads no further: what it yields is a beginning of the
//     log without holes.
//
// Nothing is lost while ClickHouse is away: the log keeps the events, and the
// batch in hand is tried again with growing delay. One database belongs to one
// event log. Tables are filled in parallel for the streams and one after the
// other within a batch. All methods may be called from several goroutines.
//
// # Proof
//
// A Verifier compares the log with the tables at any time: per hour the distinct
// event_ids, by number and checksum, and the roll-ups with what their tables say.
// It tells what is missing, what is double and what only the table has, and repairs
// by replay, beside a store that runs. Its memory does not grow with the log:
// hours are summed up, and only those that differ are looked at event by event,
// half a million at a time.
//
// # Asks
//
// The user needs INSERT, SELECT, CREATE TABLE and CREATE VIEW on the database,
// and CREATE DATABASE where it does not exist yet; to repair, ALTER and DROP TABLE.
// A Verifier that does not repair only reads.
//
// # Inside
//
// courier_store_* metrics show rows, copies, errors, time and the age of the
// oldest event that is not in its table yet. How far the tables are:
// SELECT stream, max(sequence) FROM log_position GROUP BY stream.
//
// # Tests
//
// storetest.New gives a test a database of its own on a real engine, or on the
// server that COURIER_TEST_CLICKHOUSE names.
package store
