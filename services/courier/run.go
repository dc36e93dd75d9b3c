package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"courier/bus"
	"courier/collector"
	"courier/explore"
	"courier/runner"
	"courier/schemas"
	"courier/services"
)

type runCommand struct {
	outputFormatFlags
	terminalFlags
	nodeFlags
	natsFlags
	requestFlags
	Adapt        string   `help:"How the running command gets a new batch size or number of data loaders. off: never; control: between epochs the command reads batch_size and loaders from the JSON file that $$COURIER_CONTROL names, and prints them with each epoch; restart: after an epoch Courier terminates the command (SIGTERM) and starts it again with the new {batch} and {loaders}, and with {epoch}, the number of epochs done." default:"off" enum:"off,control,restart" env:"COURIER_ADAPT"`
	BatchSize    int      `help:"Start with this batch size instead of the advised one. Without --batch-sizes and --adapt it is the only choice."`
	Container    string   `help:"Docker container that the command starts, for --resize docker and docker-cap." env:"COURIER_CONTAINER"`
	Instrument   bool     `help:"Measure the epochs of Python trainings (PyTorch, Keras, Lightning, Hugging Face, XGBoost, LightGBM, CatBoost, scikit-learn) inside their processes, through PYTHONPATH. The output is still read." default:"true" negatable:"" env:"COURIER_INSTRUMENT"`
	NoCgroup     bool     `help:"Run the command in the cgroup of this process. By default it gets its own where permitted, to measure its resource usage." env:"COURIER_NO_CGROUP"`
	StopWhenLate string   `help:"What happens after an epoch if the next one would probably (with the confidence of the request) end after the SLO or Slurm's time limit. off: nothing; control: the file that $$COURIER_CONTROL names has stop set to true; signal: the command gets SIGTERM. The run then counts as finished, and as incomplete." default:"off" enum:"off,control,signal" env:"COURIER_STOP_WHEN_LATE"`
	StopWhenLost bool     `help:"Stop the command if its heartbeats have not reached NATS for 30 s. After a minute the job counts as lost, and its CPUs are given to other jobs. By default it goes on, and is counted again as soon as a heartbeat arrives." env:"COURIER_STOP_WHEN_LOST"`
	Resize       string   `help:"How the CPUs of an --elastic job change between two epochs. weight: weight of its cgroup, so that it may still use CPUs that nobody else uses; cap: also an upper limit; control: the command reads cpus from the file that $$COURIER_CONTROL names, and prints it with each epoch; restart: as for --adapt, with the new {cpus}; docker: weight of --container, by docker update; docker-cap: also an upper limit; kubernetes: in-place resize of the pod that this process runs in; off: never." default:"weight" enum:"weight,cap,control,restart,docker,docker-cap,kubernetes,off" env:"COURIER_RESIZE"`
	Command      []string `arg:"" optional:"" passthrough:"" help:"Training command; {batch}, {cpus}, {workers}, {loaders}, {epochs} and {epoch}, the number of epochs done, are replaced."`
}

func (c *runCommand) Run(w *environment) error {
	node, err := nodeName(c.Node)
	if err != nil {
		return err
	}
	command := trainingCommand(c.Command)
	if len(command) == 0 {
		return usagef("no command: courier run --epochs N -- COMMAND --batch-size {batch}")
	}
	var connection atomic.Pointer[bus.Bus] // It may be set after the job has ended.
	o := runner.Options{
		Observer:       collector.NewObserver(w.log),
		Request:        c.requestFor(command),
		Node:           node,
		Command:        command,
		EpochPattern:   c.EpochPattern,
		MetricsFile:    c.MetricsFile,
		NoInstrument:   !c.Instrument,
		NoPTY:          c.NoPTY || !services.IsTerminal(w.stdout),
		NoCgroup:       c.NoCgroup,
		KeepOutput:     c.KeepOutput,
		PageURL:        c.PageURL,
		Progress:       !c.NoProgress,
		Adapt:          c.Adapt,
		Resize:         c.Resize,
		Container:      c.Container,
		StopWhenLate:   c.StopWhenLate,
		StopWhenLost:   c.StopWhenLost,
		BatchSize:      c.BatchSize,
		Address:        bus.WithoutSecrets(c.NATSURL),
		SpoolDir:       c.SpoolDir,
		Stdin:          os.Stdin,
		Stdout:         w.stdout,
		Stderr:         w.stderr,
		ForwardSignals: true,
		Connect: func(ctx context.Context) (*bus.Bus, error) {
			b, err := bus.Connect(ctx, c.person(c.NATSURL, "courier-run"), w.log, nil)
			connection.Store(b)
			return b, err
		},
	}
	// If nobody reads the output any more, the job is cancelled; this process must live to report it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	result, err := runner.Run(w.ctx, o, w.log)
	if b := connection.Load(); b != nil {
		closeBus(b)
	}
	if err != nil {
		return err
	}
	if result.ExitCode != 0 {
		return exitStatus(result.ExitCode)
	}
	return nil
}

// requestFor returns the request of a command. Its model is the script and it has one CPU by default.
func (c *runCommand) requestFor(command []string) schemas.JobRequest {
	q := c.request()
	q.Model = cmp.Or(q.Model, explore.ModelOf(command))
	if len(q.CPUs) == 0 {
		q.CPUs = schemas.CPUs{1}
	}
	q.User = c.asker(q.User)
	return q
}
