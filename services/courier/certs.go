package main

import (
	"fmt"

	"courier/services/certs"
)

type certsCommand struct {
	Out        string   `help:"Directory for the files; created if absent." required:"" type:"path"`
	Persons    []string `name:"person" help:"Person who submits jobs, 1 to 64 of a-z, 0-9, _ and -; may be repeated. The person worker always exists." sep:","`
	Hosts      []string `name:"host" help:"Additional names and addresses of the servers, besides nats, nats-1 to nats-3, nats1 to nats3, clickhouse, gateway and localhost." sep:","`
	Rights     string   `help:"File with the permissions of NATS users, deploy/nats/users.conf. Writes a copy with the nkeys and a block for each person." type:"existingfile"`
	Containers bool     `help:"Fill the folder containers with the files of each container of docker-compose.secure.yml. Needs --rights, now or in an earlier run."`
	Days       int      `help:"Validity of certificates in days." default:"825"`
}

func (c *certsCommand) Run(w *environment) error {
	lines, err := certs.Create(certs.Options{
		Dir:        c.Out,
		Persons:    c.Persons,
		Hosts:      c.Hosts,
		Rights:     c.Rights,
		Containers: c.Containers,
		Days:       c.Days,
	})
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(w.stdout, line)
	}
	return nil
}
