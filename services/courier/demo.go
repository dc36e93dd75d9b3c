package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"courier/advisor"
	"courier/demo"
	"courier/services"
	"courier/services/local"
	"courier/trainer"
	"courier/workloads/digits"
)

type demoCommand struct {
	outputFlags
	advisor.Policy
	Seed          uint64 `help:"Seed of the order of runs, the random batch sizes and the fits." default:"1"`
	NATSPort      int    `name:"nats-port" help:"Port of NATS; 0: any free port; -1: 4222, or a free port if it is taken." default:"-1"`
	HTTPPort      int    `name:"http-port" help:"Port of REST and the page; 0: any free port; -1: 8080, or a free port if it is taken." default:"-1"`
	Data          string `help:"Data directory (default: a temporary one, removed at the end)." type:"path"`
	Stay          bool   `help:"Keep everything running at the end, until Ctrl-C."`
	Engine        string `help:"Embed ClickHouse (auto), or run without SQL (off)." enum:"auto,off" default:"auto" env:"COURIER_ENGINE"`
	EngineLibrary string `help:"File of the ClickHouse engine, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
}

func (c *demoCommand) Run(w *environment) error {
	dir := c.Data
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "courier-demo-"); err != nil {
			return fmt.Errorf("create a data directory: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // The operating system removes it otherwise.
	}

	messages := services.Messages(w.stderr)
	l, err := c.localFlags(dir).start(w, messages)
	if err != nil {
		return err
	}
	return l.RunWith(w.ctx, func(ctx context.Context) error {
		e := l.Endpoints()
		r, err := demo.Run(ctx, demo.Options{
			Bus:        l.Bus(),
			SpoolDir:   local.SpoolDir(dir),
			WebPage:    e.HTTPURL,
			NATSURL:    e.NATSURL,
			SQLMissing: l.SQLMissing,
			Seed:       c.Seed,
			Stderr:     w.stderr,
		})
		if err == nil {
			err = c.print(w, r, r.WriteText)
		}
		if err == nil && c.Stay {
			messages("Courier keeps running until Ctrl-C: web page %s, NATS %s", e.HTTPURL, e.NATSURL)
			<-ctx.Done()
		}
		return err
	})
}

// localFlags returns the options of the services of the demo.
func (c *demoCommand) localFlags(dir string) localFlags {
	return localFlags{
		Options: local.Options{
			Data:               dir,
			NATSPort:           c.NATSPort,
			HTTPPort:           c.HTTPPort,
			ClickHouseHTTPPort: -1,
			ClickHouseTCPPort:  -1,
			Engine:             c.Engine,
			EngineLibrary:      c.EngineLibrary,
			Interval:           2 * time.Second,
		},
		Policy: c.Policy,
		Fits:   trainer.Options{NewEpochs: 1 << 30}, // Only the demo requests fits.
	}
}

type workloadCommand struct {
	Workload []string `arg:"" passthrough:"" help:"Name of the workload, digits, which trains a network on the UCI optical digits, and its flags; see courier workload digits --help."`
}

// stoppedStatus is the exit status of a shell for a command that SIGTERM ended.
const stoppedStatus = exitStatus(128 + 15)

func (c *workloadCommand) Run(w *environment) error {
	if c.Workload[0] != "digits" {
		return usagef("there is no workload %s, only digits", c.Workload[0])
	}
	err := digits.Run(w.ctx, c.Workload[1:], w.stdout)
	if errors.Is(err, context.Canceled) {
		return stoppedStatus
	}
	return err
}
