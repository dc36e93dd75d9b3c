// Package containers tests docker-compose.yml with Docker and images that are built from source.
// It starts all services, requests advice, kills servers and services, disconnects a network,
// and replaces one container after the other under load. Then it compares the log with the
// tables. Finally it starts the cluster of docker-compose.secure.yml and tries to connect
// without permission.
//
//	COURIER_CONTAINERS=1 go test -v ./deploy/containers
//
// The tests need Docker (.ci/run starts it if necessary), Docker Compose, and the library of the
// ClickHouse engine. The library replaces the image of a ClickHouse server, which is not pulled,
// and reads the configuration mounted for that image.
//
// COURIER_CONTAINERS=keep leaves the containers running for inspection. COURIER_COMPOSE names a
// different Compose command. COURIER_CONTAINERS_RATE sets the requests per second (default 100).
package containers
