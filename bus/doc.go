// Package bus carries the messages of package schemas over NATS. It is the only package
// that imports the NATS client.
//
// # Use
//
// Connect to a server and call Prepare once per start: it creates the streams and buckets
// or brings them to their declared settings. Then:
//
//   - Publish and PublishOnce store events; Notify sends an event over core NATS.
//   - Follow and Read deliver the events of a stream in order.
//   - ConsumeBatch turns a stream into batches, each an exact range of sequences.
//   - Serve answers requests, and Request sends one.
//   - PutArtifact stores a fitted regressor under its sha256. SetChampion changes the
//     champion of a target by compare-and-set.
//   - Hold runs a function while this process holds a lease.
//
// # Order, concurrency, failure
//
// A Bus is safe for concurrent use. Publish returns after the stream has acknowledged the
// event. The event's identity is the message ID, so the stream drops a duplicate within its
// duplicate window.
//
// Follow delivers one message at a time in stream order, and resumes at its position when
// the server is back. ConsumeBatch records the intent to handle a batch before the handler
// sees it, and acknowledges the batch after the handler has succeeded. After a failure the
// handler is called again with the same records and a growing delay.
//
// A message that cannot be decoded goes to dead.<stream> with the reason. Letters lists
// dead letters. Replay publishes their bytes again once they can be decoded.
//
// A lost connection is always re-established. Until then calls fail with an error that matches
// schemas.ErrUnavailable, or wait until their context ends.
//
// # Users
//
// If the server requires authentication, Options names the nkey seed of a user. A call that
// the server does not permit fails at once with schemas.ErrForbidden.
//
// A user with Options.Person set submits, cancels and reports on jobs under
// person.<name>.…, where the advisor answers by HandlePerson and HandleEvent. Such a user
// follows the last message of named subjects without a JetStream consumer, because the
// right to create consumers lets a user have messages delivered to any subject.
//
// # Observe, test
//
// nats stream ls, nats consumer info and nats micro ls show the state. The metrics
// courier_bus_… count messages and dead letters. Tests get a real in-process server from
// bus/bustest.
package bus
