// Package deploy contains the files to run Courier on other machines:
//
//   - the images (Dockerfile, release.Dockerfile), and the configuration of NATS and ClickHouse
//     (nats, clickhouse)
//   - monitoring (prometheus, grafana)
//   - systemd units and Kubernetes manifests (systemd, kubernetes)
//   - scripts to run jobs under Slurm and Spark (slurm, spark)
//
// docker-compose.yml in the root directory runs all services on one machine;
// docker-compose.secure.yml adds users and TLS.
//
// The package contains only tests, which compare the files with the program. They parse every flag
// and variable, compare versions and rights with courier all, start the services of
// docker-compose.yml as local processes (except ClickHouse and its clients), and run the job scripts
// with stand-ins for the commands of Slurm and Spark (testdata). Only the tests in containers need a
// container engine.
package deploy
