// Package containers tests docker-compose.yml as it is used: in containers of a
// Docker engine, with images that are built here from source. It starts everything,
// asks for advice, kills servers and services, cuts a network, renews one container
// after the other under load, and then compares the log with the tables. Then it starts
// the cluster that docker-compose.secure.yml closes, and tries to get in.
//
//	COURIER_CONTAINERS=1 go test -v ./deploy/containers
//
// It needs a Docker engine (.ci/run starts one where there is none), docker-compose
// or docker compose, and the library of the ClickHouse engine: that stands in for
// the image of a ClickHouse server, which is not pulled, and reads the settings that are
// mounted for it. COURIER_CONTAINERS=keep
// leaves everything up for a look, COURIER_COMPOSE names another docker-compose, and
// COURIER_CONTAINERS_RATE asks for more or fewer than 100 requests per second.
package containers
