package main

import (
	"fmt"
	"slices"

	"courier/services"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
)

// newTrainer returns the trainer as a child process, so that a fit delays neither the goroutines of
// the advisor nor its garbage collector. It returns nil with --trainer=off.
func (l *local) newTrainer() (*services.Child, error) {
	if l.f.Trainer == "off" {
		return nil, nil
	}
	url := l.f.ExternalNATS
	if l.server != nil {
		url = l.server.URL()
	}
	c := trainerCommand{
		trainerFlags:    l.f.trainerFlags,
		clickHouseFlags: l.f.clickHouseFlags,
		Supervised:      true,
	}
	c.identityFlags = l.f.identityFlags
	c.NATSReplicas = 1
	c.HTTPAddress = "127.0.0.1:0"
	args, err := arguments(&c, "nats-url")
	if err != nil {
		return nil, err
	}
	return services.NewChild(services.ChildOptions{
		Name:   "trainer",
		Args:   slices.Concat([]string{"trainer"}, l.logFlags, args),
		Env:    []string{"COURIER_NATS_URL=" + url}, // The URL may hold a password.
		Stderr: l.stderr,
	}, l.log, l.reg), nil
}

// arguments returns a command line that is parsed to the flags of command, without those in
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

// awaitReady waits until the advisor answers and the trainer runs. It returns false if l.run ended
// before; its error is then still in ended.
func (l *local) awaitReady(ended chan error) bool {
	waits := []<-chan struct{}{l.advisor.Answering()}
	if l.trainer != nil {
		waits = append(waits, l.trainer.Started())
	}
	for _, ready := range waits {
		select {
		case <-ready:
		case err := <-ended:
			ended <- err
			return false
		}
	}
	return true
}

// ready returns nil when the advisor answers and the trainer runs.
func (l *local) ready() error {
	if err := l.advisor.Ready(); err != nil || l.trainer == nil {
		return err
	}
	return l.trainer.Ready()
}

// gatherer returns the metrics of this process and of the trainer.
func (l *local) gatherer() prometheus.Gatherer {
	if l.trainer == nil {
		return l.reg
	}
	return prometheus.Gatherers{l.reg, l.trainer}
}
