package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

// learn asks for regressors of all that was measured.
func (d *demo) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var reply schemas.TrainReply
	q := schemas.TrainRequest{Promote: true}
	if err := d.local.bus.Request(ctx, schemas.SubjectRegressorTrain, &q, &reply); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	d.say("")
	d.say("2. Learn from it")
	for i := range reply.Promoted {
		d.say("   %s", learned(&reply.Promoted[i]))
	}
	for _, r := range reply.Rejected {
		d.say("   %s: not used, %s", targetName(r.Target), r.Reason)
	}
	for _, target := range []string{schemas.TargetEpochTime, schemas.TargetAccuracy} {
		promotes := func(p schemas.Promoted) bool { return p.Target == target }
		if !slices.ContainsFunc(reply.Promoted, promotes) {
			return fmt.Errorf("train: no regressor of %s is worth using on a machine as busy as"+
				" this"+
				" one: try again when it is quieter %v", target, reply.Waiting)
		}
	}
	return d.awaitRegressors(ctx, reply)
}

// learned describes what a regressor rests on and how exact it is.
func learned(p *schemas.Promoted) string {
	epochs, configurations := "epochs", "configurations"
	if p.Target == schemas.TargetStartup {
		epochs = "runs"
	}
	if p.Settings == 1 {
		configurations = "configuration"
	}
	text := fmt.Sprintf("%s: from %d %s in %d %s",
		targetName(p.Target), p.Examples, epochs, p.Settings, configurations)
	if p.MedianAbsoluteRatio == 0 { // nothing was held out
		return text
	}
	unit := "%"
	if p.Target == schemas.TargetAccuracy {
		unit = "points"
	}
	return fmt.Sprintf("%s; runs that were held out are off by %.1f %s on average",
		text, 100*p.MedianAbsoluteRatio, unit)
}

// targetName is a target in words.
func targetName(target string) string {
	names := map[string]string{
		schemas.TargetEpochTime: "epoch time",
		schemas.TargetStartup:   "start-up",
		schemas.TargetAccuracy:  "accuracy",
	}
	return names[target]
}

// awaitRegressors returns when the advisor answers with the regressors.
func (d *demo) awaitRegressors(ctx context.Context, want schemas.TrainReply) error {
	q := demoRequest(schemas.JobRequest{CPUs: schemas.CPUs{1}})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var a schemas.Advice
		if err := d.local.bus.Request(ctx, schemas.SubjectJobPredict, &q, &a); err != nil {
			return fmt.Errorf("await the regressors: %w", err)
		}
		missing := func(p schemas.Promoted) bool { return a.Regressors[p.Target] != p.ModelDigest }
		if !slices.ContainsFunc(want.Promoted, missing) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("await the regressors: %w", ctx.Err())
		}
	}
}
