// Package schemas is the contract of Courier: every subject, message, feature, error code and
// table that crosses the wire or is stored. It imports no other package of Courier.
//
// # Use
//
// Each message is one Go struct. An event or a request returns its Subject and checks itself with
// Validate. An event carries its identity (EventID), which is also the message ID by which NATS
// drops duplicates.
//
// Parse reads an event tolerantly: it ignores unknown fields, so that an old service survives a
// new field. DecodeRequest reads a request strictly: an unknown field is an error that names it.
//
// # Guarantees
//
// Fields are added, never renamed, retyped or reused. A message that becomes a row is flat: its
// JSON names are the column names of its table in clickhouse/. Names of numbers end in their unit,
// instants are RFC 3339 in UTC, and an unmeasured value is absent, never 0. Values are plain and
// safe to copy; the package starts no goroutine.
//
// # Generated files
//
// The package's tests generate json/ and asyncapi.yaml from the types and their comments
// (go test ./schemas -update). testdata/ holds one example of each message, which the tests of
// other packages also use.
package schemas
