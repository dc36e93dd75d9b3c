// Package deploy is what runs Courier on machines that are not a developer's:
// the image (Dockerfile), and the settings of the servers beside the services
// (nats, clickhouse). docker-compose.yml at the root brings them together.
//
// It holds no code. Its tests hold docker-compose.yml against the program: they
// ask the parser for every flag and variable, compare versions and rights with
// those of courier all, and start all but ClickHouse and what needs it as
// processes of this machine, as the file says. They need no container.
package deploy
