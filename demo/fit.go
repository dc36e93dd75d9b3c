package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// fit requests regressors of the measured runs, and waits until the advisor uses them.
func (d *demo) fit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var reply schemas.TrainReply
	if err := d.o.Bus.Request(ctx, schemas.SubjectRegressorTrain, &schemas.TrainRequest{}, &reply); err != nil {
		return fmt.Errorf("train: %w", err)
	}

	d.printf("")
	d.printf("2. Learn: fit regressors on these runs")
	for i := range reply.Promoted {
		d.printf("   %s", describeRegressor(&reply.Promoted[i]))
	}
	for _, target := range []string{schemas.TargetEpochTime, schemas.TargetAccuracy} {
		hasTarget := func(p schemas.Promoted) bool { return p.Target == target }
		if !slices.ContainsFunc(reply.Promoted, hasTarget) {
			return fmt.Errorf("train: no usable regressor of %s, because the machine is busy;"+
				" try again when it is idle: %v", target, reply.Waiting)
		}
	}
	return d.awaitRegressors(ctx, reply)
}

// describeRegressor describes the examples and the error of a regressor.
func describeRegressor(p *schemas.Promoted) string {
	text := fmt.Sprintf("%s: from %s in %s", strings.ReplaceAll(p.Target, "_", " "),
		schemas.FormatCount(p.Examples, "example"),
		schemas.FormatCount(p.Configurations, "configuration"))
	if p.HeldOutError > 0 { // else no example was held out
		text += fmt.Sprintf("; %s on held-out runs", schemas.FormatError(p.Target, p.HeldOutError))
	}
	return text
}

// awaitRegressors waits until the advisor answers with the promoted regressors.
func (d *demo) awaitRegressors(ctx context.Context, trained schemas.TrainReply) error {
	q := jobRequest(schemas.JobRequest{})
	err := poll(ctx, func() (done bool, err error) {
		var a schemas.Advice
		err = d.o.Bus.Request(ctx, schemas.SubjectJobPredict, &q, &a)
		missing := func(p schemas.Promoted) bool { return a.Regressors[p.Target] != p.ModelDigest }
		return !slices.ContainsFunc(trained.Promoted, missing), err
	})
	if err != nil {
		return fmt.Errorf("await the regressors: %w", err)
	}
	return nil
}
