// Package gateway translates between HTTP and the bus: REST requests, live
// events and a web page. It decides nothing. What it answers was asked of a
// service or read from the event log.
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
// Handler is safe for any number of requests at once. Events of one stream
// reach a client in the order of the stream; nothing is promised between
// streams. Each client of /api/v1/events has a buffer of its own; one that
// reads too slowly is disconnected and counted, and hears nothing of what it
// missed: a client that connects asks the REST routes for the present state.
// When Run ends, every live client is disconnected, so that the server can stop.
// A request that the bus does not answer within two seconds is refused as
// unavailable; another regressor in use may take a minute, because a fit that
// runs is waited for. Errors are answered as schemas.Error in JSON; details of an
// internal one go to the log.
//
// # What it asks of the caller
//
// Without Tokens the gateway knows no user: whoever reaches it may submit, cancel
// and change the regressors in use. With them a reader asks, a submitter submits
// and cancels jobs of his own, for whom the gateway asks in his name, and an
// admin does all; the file holds hashes, and no log a token. Rate bounds how often
// each user or address asks. No foreign origin is allowed (no CORS), a page of
// one changes nothing whatever cookies its visitor has, and only bodies of type
// application/json are taken. HTTPS is the caller's listener.
//
// # Look inside, test
//
// Metrics begin with courier_gateway_: requests by route and status, live
// clients, slow clients dropped. Tests run it over a real bus (bus/bustest).
package gateway
