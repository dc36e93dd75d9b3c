// Package gateway translates between HTTP and the bus: REST requests, live
// events and a web page. It decides nothing. It asks a service, or reads the event log.
//
// # Use
//
// New makes a Gateway and starts nothing. Handler is everything it serves; the
// listener belongs to the caller. Run follows the log for the live events and
// the nodes, and must run while Handler serves:
//
//	g, err := gateway.New(b, gateway.Options{Gatherer: registry, Version: version}, log, registry)
//	go g.Run(ctx)
//	http.Serve(listener, g.Handler())
//
// The routes are listed in routes.go and described in openapi.yaml, which is
// served as /api/v1/openapi.yaml. A request body is handed on as it came: the
// service that answers reads it strictly, so that a new field needs no new
// gateway.
//
// # Order, concurrency, failure
//
// Handler is safe for concurrent requests. Events of one stream reach a client of
// /api/v1/events in the order of the stream; no order is promised between streams. The
// streams are listed in feeds.go. Each event has an id with its place in every stream: a
// client that sends the id continues after that event, at any gateway, as far as the log
// reaches and within bounds. Each client has a queue of its own. A client that reads too
// slowly loses events and is told how many; one that does not read at all is disconnected.
// When Run ends, every live client is disconnected, so that the server can stop.
//
// A request that the bus does not answer within two seconds is refused as unavailable.
// Submissions and cancellations, which the advisor records, get longer than the advisor
// takes (schemas.SubmitTimeout). A submission has a job ID before the advisor is asked:
// the request's own, one derived from the header Idempotency-Key, or a random one, which
// the client gets with the error. Promotions may take a minute, since a running fit is
// waited for. Errors are answered as schemas.Error in JSON; details of internal errors go
// to the log.
//
// The last samples of 16,384 nodes are remembered, with ten minutes of recent points of
// each; the node that was silent longest makes room.
//
// # Needs from the caller
//
// Without Tokens the gateway knows no users: everybody who reaches it may submit, cancel
// and change the champions. It then answers only under localhost, an IP address, or a name
// of AllowedHosts, so that a page of another site cannot reach it by DNS rebinding. With
// Tokens a reader asks, a submitter submits and cancels jobs of the same user, in whose
// name the gateway asks, and an admin has all rights; the file holds hashes, and the log
// never has a token. Rate bounds the requests of each user or address. No foreign origin
// is allowed (no CORS), a page of one cannot change anything whatever cookies its visitor
// has, and only bodies of type application/json are accepted. HTTPS is the caller's
// listener.
//
// # Observability, tests
//
// Metrics begin with courier_gateway_: requests by route and status, live clients, events
// that they missed, nodes. Tests run over a real bus (bus/bustest).
package gateway
