// Package schemas holds the words of Courier: every subject, message, feature,
// error code and table that crosses the wire or rests on a disk. It is the
// public contract, and it imports nothing but the standard library.
//
// # Use
//
// One Go struct stands for one message. An event or a request knows its
// Subject, checks itself with Validate, and an event carries its identity
// (EventID), which is also the message ID that NATS drops copies by. Parse
// reads an event from its subject and bytes, tolerantly, so that an old service
// survives a new field; DecodeRequest reads a request strictly, so that a
// misspelt field is refused by its name.
//
// # Promises
//
// Fields are added, never renamed, retyped or reused; history.go lists each
// change. A message that becomes a row is flat: its JSON names are the column
// names of its table in clickhouse/. Numbers carry their unit in their name,
// instants are RFC 3339 in UTC, and what was not measured is absent, never 0.
// Values are plain and safe to copy; nothing here starts a goroutine.
//
// # Inside
//
// json/ and asyncapi.yaml are generated from the types by the package's tests
// (go test ./schemas -update) and committed. testdata/ holds one example of
// each message; all rooms test with those.
package schemas
