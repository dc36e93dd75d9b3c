package main

import (
	"context"
	"fmt"
)

type allCommand struct{ localFlags }

func (c *allCommand) Run(w *world) error {
	say := func(format string, args ...any) { fmt.Fprintf(w.stdout, format+"\n", args...) }
	l, err := startLocal(w, c.localFlags, say)
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
	say("courier   %s is ready, data in %s", buildVersion(), c.Data)
	say("page      %s", l.endpoints.HTTPURL)
	say("nats      %s", l.endpoints.NATSURL)
	say("try       courier run --nats-url %s --model digits-mlp --cpus 2 --batch-sizes 8,32,128"+
		" --epochs 10 --slo 60s -- courier workload digits --batch-size {batch} --cpus {cpus}"+
		" --epochs {epochs}", l.endpoints.NATSURL)
	err = <-ended
	if err == nil {
		say("courier   stopped")
	}
	return err
}
