// Package deploy is what runs Courier on machines that are not a developer's:
// the image (Dockerfile), the settings of the servers beside the services
// (nats, clickhouse), what watches them (prometheus, grafana), units for bare metal
// (systemd), manifests (kubernetes), and how users of Slurm and Spark put their jobs
// under an SLO. docker-compose.yml at the root brings the services together on one
// machine, and docker-compose.secure.yml beside it closes that cluster.
//
// It holds no code. Its tests hold every file against the program: they ask the
// parser for every flag and variable, compare versions and rights with those of
// courier all, start all but ClickHouse and what needs it as processes of this
// machine, as docker-compose.yml says, and run the job scripts with commands that
// stand in for those of Slurm and Spark (testdata). They need no container; those of
// the room containers do.
package deploy
