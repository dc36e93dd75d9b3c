package main

import (
	"context"
	"fmt"
)

type allCommand struct{ localFlags }

func (c *allCommand) Run(w *environment) error {
	printf := func(format string, args ...any) { fmt.Fprintf(w.stdout, format+"\n", args...) }
	l, err := c.start(w, printf)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	if !l.AwaitReady(ended) {
		return <-ended
	}

	e := l.Endpoints()
	printf("courier   %s is ready, data in %s", buildVersion(), c.Data)
	printf("page      %s", e.HTTPURL)
	printf("nats      %s", e.NATSURL)
	printf("try       courier run --nats-url %s --model digits-mlp --cpus 2 --batch-sizes 8,32,128"+
		" --epochs 10 --slo 60s -- courier workload digits --batch-size {batch} --cpus {cpus}"+
		" --epochs {epochs}", e.NATSURL)
	err = <-ended
	if err == nil {
		printf("courier   stopped")
	}
	return err
}
