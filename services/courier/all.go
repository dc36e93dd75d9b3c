package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"courier/advisor"
	"courier/services/local"

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
		printf("try       courier run --nats-url %s --model digits-mlp --cpus 2"+
			" --batch-sizes 8,32,128 --epochs 10 --slo 60s -- courier workload digits"+
			" --batch-size {batch} --cpus {cpus} --epochs {epochs}", e.NATSURL)
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
	Data               string `help:"Data directory." default:"courier-data" type:"path" env:"COURIER_DATA"`
	NATSPort           int    `name:"nats-port" help:"Port of NATS; 0: any free port; -1: 4222, or a free port if it is taken." default:"-1" env:"COURIER_NATS_PORT"`
	HTTPPort           int    `name:"http-port" help:"Port of REST and the page; 0: any free port; -1: 8080, or a free port if it is taken." default:"-1" env:"COURIER_HTTP_PORT"`
	ClickHouseHTTPPort int    `name:"clickhouse-http-port" help:"HTTP port of the embedded ClickHouse; 0: any free port; -1: 8123, or a free port if it is taken." default:"-1" env:"COURIER_CLICKHOUSE_HTTP_PORT"`
	ClickHouseTCPPort  int    `name:"clickhouse-tcp-port" help:"Native port of the embedded ClickHouse; 0: any free port; -1: 9000, or a free port if it is taken." default:"-1" env:"COURIER_CLICKHOUSE_TCP_PORT"`
	ExternalNATS       string `name:"nats-url" help:"URL of NATS servers to use instead of an embedded one. The variable of the other commands, COURIER_NATS_URL, does not apply." env:"COURIER_EXTERNAL_NATS_URL"`
	identityFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of a ClickHouse to use instead of an embedded one, such as clickhouse://user:password@host:9000/courier." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Engine        string        `help:"Embed ClickHouse, downloaded once with npm (auto), or run without SQL (off)." enum:"auto,off" default:"auto" env:"COURIER_ENGINE"`
	EngineLibrary string        `help:"File of the ClickHouse engine, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
	SyncAlways    bool          `name:"nats-sync-always" help:"Write each event to disk before it is acknowledged: safe against power loss, but slower." env:"COURIER_NATS_SYNC_ALWAYS"`
	Node          string        `group:"node" help:"Name of this node (default: its host name)." env:"COURIER_NODE"`
	Interval      time.Duration `help:"Time between two samples of the node." default:"2s" env:"COURIER_INTERVAL"`
	Trainer       string        `help:"Fit in a child process with low priority (on), or leave fits to a courier trainer elsewhere (off)." enum:"on,off" default:"on" env:"COURIER_TRAINER"`
	hostFlags
	admissionFlags
	trainerFlags
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
	o := local.Options{
		DataDir:            f.Data,
		Version:            buildVersion(),
		NATS:               f.identityFlags.options(f.ExternalNATS, ""),
		NATSPort:           f.NATSPort,
		SyncAlways:         f.SyncAlways,
		NoEngine:           f.Engine == "off",
		EngineLibrary:      f.EngineLibrary,
		ClickHouseHTTPPort: f.ClickHouseHTTPPort,
		ClickHouseTCPPort:  f.ClickHouseTCPPort,
		HTTPPort:           f.HTTPPort,
		AllowedHosts:       f.AllowedHosts,
		Node:               f.Node,
		Interval:           f.Interval,
		Advisor: advisor.Options{
			Version:   buildVersion(),
			Admission: f.Admission,
			MoveCPUs:  f.MoveCPUs,
			Objective: f.Objective,
		},
	}
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
		trainerFlags:    f.trainerFlags,
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
