package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"courier/services"
	"courier/trainer"
)

type demoCommand struct {
	outputFlags
	Jobs       int     `help:"Run this many jobs that overlap at random, instead of three jobs one after another; takes some minutes." default:"0"`
	Confidence float64 `help:"Confidence of meeting the SLO that the jobs of --jobs ask for (default: 0.95)." default:"0"`
	admissionFlags
	Seed          uint64 `help:"Seed of the order of runs, the random batch sizes and the fits." default:"1"`
	Data          string `help:"Data directory (default: a temporary one, removed at the end)." type:"path"`
	Stay          bool   `help:"Keep everything running at the end, until Ctrl-C."`
	Engine        string `help:"Embed ClickHouse (auto), or run without SQL (off)." enum:"auto,off" default:"auto" env:"COURIER_ENGINE"`
	EngineLibrary string `help:"File of the ClickHouse engine, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
}

func (c *demoCommand) Run(w *world) error {
	dir := c.Data
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "courier-demo-"); err != nil {
			return fmt.Errorf("create a data directory: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
	}
	d := &demo{c: c, w: w, random: rand.New(rand.NewPCG(c.Seed, 0))}
	l, err := startLocal(w, c.localFlags(dir), d.say)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx) }()
	if !l.awaitReady(ended) {
		return <-ended
	}
	d.local = l
	err = d.run(ctx)
	if err == nil && c.Stay {
		d.say("stays up at %s, NATS at %s; Ctrl-C ends it", l.endpoints.HTTPURL,
			l.endpoints.NATSURL)
		<-ctx.Done()
	}
	cancel()
	if stopped := <-ended; err == nil {
		err = stopped
	}
	return err
}

// localFlags are the settings of the demo's services.
func (c *demoCommand) localFlags(dir string) localFlags {
	learning := trainerFlags{
		Method:    string(trainer.MethodEvidence),
		NewEpochs: 1 << 30,
		Trees:     200,
		Seed:      c.Seed,
	}
	return localFlags{
		Data:               dir,
		NATSPort:           -1,
		HTTPPort:           -1,
		ClickHouseHTTPPort: -1,
		ClickHouseTCPPort:  -1,
		Engine:             c.Engine,
		EngineLibrary:      c.EngineLibrary,
		Interval:           2 * time.Second,
		admissionFlags:     c.admissionFlags,
		trainerFlags:       learning,
	}
}

// demo is one run of the story.
type demo struct {
	c      *demoCommand
	w      *world
	local  *local
	random *rand.Rand
	copies int // of each image in an epoch
}

// say prints a line for people; JSON keeps stdout for itself.
func (d *demo) say(format string, args ...any) {
	if services.IsTerminal(d.w.stderr) {
		format = "\r\x1b[K" + format // the progress bar may stand there
	}
	fmt.Fprintf(d.w.stderr, format+"\n", args...)
}

func (d *demo) run(ctx context.Context) error {
	d.say("Courier is up: page %s, NATS %s", d.local.endpoints.HTTPURL, d.local.endpoints.NATSURL)
	if d.c.Jobs == 0 {
		return d.promises(ctx)
	}
	measured, err := d.measure(ctx, d.factorial())
	if err != nil {
		return err
	}
	if err := d.learn(ctx); err != nil {
		return err
	}
	r, err := d.crowd(ctx, measured.all())
	if err != nil {
		return fmt.Errorf("overlapping jobs: %w", err)
	}
	return d.printCrowd(r)
}

// promises measures, learns, and runs the three jobs with SLOs.
func (d *demo) promises(ctx context.Context) error {
	measured, err := d.measure(ctx, d.replicated())
	if err != nil {
		return err
	}
	typical := measured.typical()
	d.sayTypical(typical, measured.noise())
	if err := d.learn(ctx); err != nil {
		return err
	}
	r, err := d.orders(ctx, typical, measured.noise())
	if err != nil {
		return err
	}
	return d.print(r)
}
