package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"courier/advisor"
	"courier/services/local"
	"courier/trainer"

	"github.com/alecthomas/kong"
)

type allCommand struct{ localFlags }

// smallGrowth is the growth of the heap between garbage collections, in percent, of processes that share a
// machine with trainings: with the default, a burst of events needs a fourth more memory.
const smallGrowth = 50

// growSlowly lets the heap grow by smallGrowth, unless the environment says otherwise.
func growSlowly(w *environment) {
	if w.getenv("GOGC") == "" {
		debug.SetGCPercent(smallGrowth)
	}
}

func (c *allCommand) Run(w *environment) error {
	growSlowly(w)
	printf := func(format string, args ...any) { fmt.Fprintf(w.stdout, format+"\n", args...) }
	l, err := c.start(w, printf)
	if err != nil {
		return err
	}
	err = l.RunWith(w.ctx, func(ctx context.Context) error {
		e := l.Endpoints()
		printf("courier   %s is ready, data in %s", buildVersion(), c.Data)
		printf("page      %s", e.HTTPURL)
		printf("nats      %s", e.NATSURL)
		printf("try       courier run --nats-url %s --page-url %s --model digits-mlp --cpus 2"+
			" --batch-sizes 8,32,128 --epochs 10 --slo 60s -- courier workload digits"+
			" --batch-size {batch} --cpus {cpus} --epochs {epochs}", e.NATSURL, e.HTTPURL)
		<-ctx.Done()
		return nil
	})
	if err == nil {
		printf("courier   stopped")
	}
	return err
}

// localFlags are the flags of a cluster in one process.
type localFlags struct {
	local.Options
	ExternalNATS string `name:"nats-url" help:"URL of NATS servers to use instead of an embedded one. The variable of the other commands, COURIER_NATS_URL, does not apply." env:"COURIER_EXTERNAL_NATS_URL"`
	identityFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of a ClickHouse to use instead of an embedded one, such as clickhouse://user:password@host:9000/courier." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Trainer string `help:"Fit in a child process with low priority (on), or leave fits to a courier trainer elsewhere (off)." enum:"on,off" default:"on" env:"COURIER_TRAINER"`
	advisor.Policy
	Fits trainer.Options `embed:""`
}

// start opens all parts except SQL. The caller then calls Run of the instance.
func (f localFlags) start(w *environment, printf func(string, ...any)) (*local.Instance, error) {
	o, err := f.options(w)
	if err != nil {
		return nil, err
	}
	o.Printf = printf
	return local.Start(w.ctx, o, w.log)
}

func (f localFlags) options(w *environment) (local.Options, error) {
	o := f.Options
	o.Version = buildVersion()
	o.NATS = f.identityFlags.options(f.ExternalNATS, "")
	o.Advisor = advisor.Options{Policy: f.Policy, Version: buildVersion()}
	if f.ClickHouseURL != "" {
		o.ClickHouse = f.clickHouseFlags.options(f.ClickHouseURL)
	}
	if f.Trainer == "off" {
		return o, nil
	}
	args, err := f.trainerArgs()
	o.TrainerArgs = slices.Concat([]string{"trainer"}, w.logFlags, args)
	o.TrainerStderr = w.stderr
	return o, err
}

// trainerArgs returns the flags of the trainer's process. It gets the URL of NATS otherwise,
// because the URL may have a password.
func (f localFlags) trainerArgs() ([]string, error) {
	c := trainerCommand{
		Fits:            f.Fits,
		clickHouseFlags: f.clickHouseFlags,
		Supervised:      f.Data,
	}
	c.identityFlags = f.identityFlags
	c.NATSReplicas = 1
	c.HTTPAddress = "127.0.0.1:0"
	return arguments(&c, "nats-url")
}

// arguments returns a command line that sets the flags of command, except the flags in
// leftOut.
func arguments(command any, leftOut ...string) ([]string, error) {
	parser, err := kong.New(command)
	if err != nil {
		return nil, fmt.Errorf("list the flags of a command: %w", err)
	}
	var args []string
	for _, f := range parser.Model.Flags {
		if f.Name != "help" && !slices.Contains(leftOut, f.Name) {
			args = append(args, fmt.Sprintf("--%s=%v", f.Name, f.Target.Interface()))
		}
	}
	return args, nil
}
