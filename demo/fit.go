package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

// fit requests regressors of the measured runs, and waits until the advisor uses them.
func (d *demo) fit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var reply schemas.TrainReply
	q := schemas.TrainRequest{}
	if err := d.o.Bus.Request(ctx, schemas.SubjectRegressorTrain, &q, &reply); err != nil {
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
	epochs, configurations := "epochs", "configurations"
	if p.Target == schemas.TargetStartup {
		epochs = "runs"
	}
	if p.Configurations == 1 {
		configurations = "configuration"
	}
	text := fmt.Sprintf("%s: from %d %s in %d %s",
		targetText(p.Target), p.Examples, epochs, p.Configurations, configurations)
	if p.HeldOutError == 0 { // No example was held out.
		return text
	}
	return fmt.Sprintf("%s; %s on held-out runs", text,
		schemas.FormatError(p.Target, p.HeldOutError))
}

func targetText(target string) string {
	return map[string]string{
		schemas.TargetEpochTime: "epoch time",
		schemas.TargetStartup:   "start-up",
		schemas.TargetAccuracy:  "accuracy",
	}[target]
}

// awaitRegressors waits until the advisor answers with the promoted regressors.
func (d *demo) awaitRegressors(ctx context.Context, trained schemas.TrainReply) error {
	q := jobRequest(schemas.JobRequest{CPUs: schemas.CPUs{1}})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var a schemas.Advice
		if err := d.o.Bus.Request(ctx, schemas.SubjectJobPredict, &q, &a); err != nil {
			return fmt.Errorf("await the regressors: %w", err)
		}
		missing := func(p schemas.Promoted) bool { return a.Regressors[p.Target] != p.ModelDigest }
		if !slices.ContainsFunc(trained.Promoted, missing) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("await the regressors: %w", ctx.Err())
		}
	}
}
