// Package demo shows on one machine what Courier does: it measures training jobs, fits regressors
// on these runs, and then runs jobs with SLOs as advised.
//
// The jobs train a small network on handwritten digits (workloads/digits). Each one runs in a
// process of its own, as courier run starts the command of a user. Run needs a connection to a
// running cluster and changes nothing else. Its caller starts and stops the cluster. Job durations
// depend on the machine; the number of distorted images is chosen so that a job takes a few
// seconds.
package demo

import (
	"context"
	"math/rand/v2"

	"courier/services"
)

// Run measures the batch sizes on an idle machine, and runs three jobs with SLOs.
func Run(ctx context.Context, o Options) (*Result, error) {
	d := &demo{
		o:      o,
		printf: services.Messages(o.Stderr),
		random: rand.New(rand.NewPCG(o.Seed, 0)),
	}
	d.printf("Courier is running: web page %s, NATS %s", o.WebPage, o.NATSURL)
	times, err := d.measure(ctx)
	if err != nil {
		return nil, err
	}
	typical, noise := times.typical(), times.noise()
	d.printTypical(typical, noise)

	if err := d.fit(ctx); err != nil {
		return nil, err
	}
	return d.runSLOJobs(ctx, typical, noise)
}
