// Package gateway serves Courier over HTTP: REST requests, live events and a web page. It makes no
// decisions. It forwards requests to the services and reads the event log. routes.go lists the
// routes, openapi.yaml describes them. Bodies are forwarded unchanged: the answering service
// validates them, so that a new field needs no new gateway.
//
// The caller owns the listener, and Run must run while Handler serves:
//
//	g, err := gateway.New(b, gateway.Options{Gatherer: registry}, log, registry)
//	go g.Run(ctx)
//	http.Serve(listener, g.Handler())
//
// A client of /api/v1/events gets the new events of one stream in the order of the stream; the order
// between streams is undefined. A client that reads too slowly is disconnected. When a client connects
// again, it reads the current state by REST; a program that needs every event follows the log at NATS.
//
// A request that no service answers within two seconds fails with unavailable. Submissions and
// cancellations have a longer timeout than the advisor (schemas.SubmitTimeout), promotions one
// minute, because they wait for a running fit. A submission gets its job ID before the advisor is
// asked: that of the request, one derived from the header Idempotency-Key, or a random one. An error
// response contains it.
//
// With Notify the gateway also posts warnings, lost jobs, missed SLOs, drifts and runs that are not
// learned from to a webhook. A slow webhook delays nothing else: its queue is bounded.
//
// Without Tokens every client may submit, cancel and change champions, but only under the host names
// localhost, IP addresses and AllowedHosts: this prevents DNS rebinding by the page of another site.
// With Tokens a reader may query, a submitter may also submit and cancel their own jobs, and an admin
// has all rights. The gateway sends requests in the name of the user, and never logs a token.
// Requests of other origins (CORS) are never allowed, regardless of cookies. HTTPS is up to the
// caller's listener.
package gateway
