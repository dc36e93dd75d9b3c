// Package bus is the wire: it carries the messages of package schemas over
// NATS, and is the only room that knows NATS.
//
// # Use
//
// Connect, Prepare the streams once (Streams and ApplyStreams compare and repair
// what somebody changed since), then Publish events, Follow a stream from
// any place in order, turn a stream into batches with ConsumeBatch, ask with
// Request and answer with Serve. Artifacts (regressors) are immutable and named
// by their sha256; the champion of each target is a key changed by
// compare-and-set.
//
// # Order, concurrency, failure
//
// A Bus is safe for any number of goroutines. Publish returns after the stream
// has acknowledged, and carries the event's identity, so that a copy inside the
// stream's window is dropped. Follow delivers one message at a time in stream
// order, and starts again where it was when the server comes back. ConsumeBatch
// alone decides a message's fate: a batch is an exact range of sequences whose
// intent is recorded before the handler sees it; it is acknowledged after the
// handler succeeded, repeated with the same rows and growing delay when it did
// not; what cannot be understood goes to dead.<stream> with the reason. Letters
// lists those, and Replay publishes the bytes again once they can be understood.
// The connection is re-established for ever; calls meanwhile fail with an error
// that matches schemas.ErrUnavailable, or wait as long as their context lets them.
//
// # Users
//
// Where the server knows its users, Options names the seed of one, and each call
// that it does not permit fails at once with schemas.ErrForbidden. A Person submits,
// cancels and tells of jobs under person.<name>.…, which the advisor answers by
// HandlePerson and HandleEvent. Who follows the last of named subjects reads them
// without a consumer, because who may make one may have messages delivered anywhere.
//
// # Look inside, test
//
// nats stream ls, nats consumer info and nats micro ls show the state; the
// metrics courier_bus_… count messages and dead letters. Tests take a real
// server in the process from bus/bustest.
package bus
