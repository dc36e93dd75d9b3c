// Package gateway serves Courier over HTTP: REST requests, live events and a web page. It makes no
// decisions. It forwards requests to the services and reads the event log.
//
// # Use
//
// New returns a Gateway and starts nothing. Handler serves all routes; the caller owns the
// listener. Run follows the event log for live events and nodes, and must run while Handler serves:
//
//	o := gateway.Options{Gatherer: registry, Version: version}
//	g, err := gateway.New(b, o, log, registry)
//	go g.Run(ctx)
//	http.Serve(listener, g.Handler())
//
// routes.go lists the routes. openapi.yaml describes them and is served as
// /api/v1/openapi.yaml. The gateway forwards request bodies unchanged: the answering service
// validates them, so that a new field needs no new gateway.
//
// # Live events
//
// A client of /api/v1/events gets the events of one stream in the order of the stream; the order
// between streams is undefined. feeds.go lists the streams. The id of each event contains its
// position in every stream. A client that sends the id continues after that event, at any gateway,
// within the retention of the log and the bounds of events.go.
//
// Each client has its own queue. A client that reads too slowly loses events and receives their
// number; a client that does not read is disconnected. When Run returns, all live clients are
// disconnected, so that the server can stop.
//
// # Errors and timeouts
//
// Handler is safe for concurrent requests. A request that no service answers within two seconds
// fails with unavailable. Submissions and cancellations have a longer timeout than the advisor
// (schemas.SubmitTimeout), promotions one minute, because they wait for a running fit. Errors are
// schemas.Error in JSON; the log has the details of internal errors.
//
// A submission gets its job ID before the advisor is asked: the ID of the request, one derived from
// the header Idempotency-Key, or a random one. An error response contains it.
//
// # Memory
//
// The gateway keeps the last samples of 16,384 nodes with up to 300 recent points each. A new node
// replaces the one that was silent for the longest time.
//
// # Security
//
// Without Tokens the gateway does not authenticate: every client may submit, cancel and change
// champions. It then accepts only the host names localhost, IP addresses and AllowedHosts, which
// prevents DNS rebinding by a page of another site.
//
// With Tokens a reader may query, a submitter may also submit and cancel their own jobs, and an
// admin has all rights. The gateway sends requests in the name of the user. The file contains
// hashes, and tokens are never logged. Rate limits the requests of each user or address.
//
// Cross-origin requests (CORS) are not allowed and cannot change anything, regardless of cookies.
// Request bodies must have the content type application/json. HTTPS is up to the caller's listener.
//
// # Metrics and tests
//
// Metrics begin with courier_gateway_. Tests use a real NATS server (bus/bustest).
package gateway
