package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"courier/bus"
	"courier/collector"
	"courier/schemas"
	"courier/services"

	"golang.org/x/sync/errgroup"
)

type demoCommand struct {
	outputFlags
	Jobs       int     `help:"Instead of three jobs one after the other, this many that overlap at random; takes some minutes." default:"0"`
	Slow       bool    `name:"slow-machine" help:"Instead of three jobs, many, while the machine is slowed down by a CPU hog and a cgroup limit and back: drift, fit, promotion, promises; takes some ten minutes." default:"false"`
	Confidence float64 `help:"Of meeting the SLO, that the jobs of --jobs and --slow-machine ask for (default: 0.95)." default:"0"`
	admissionFlags
	Seed          uint64 `help:"Of the SLOs, the random batch sizes and the training." default:"1"`
	Data          string `help:"Directory of all that is kept (default: a temporary one, removed at the end)." type:"path"`
	Stay          bool   `help:"Keep everything running at the end, to look at the page, until Ctrl-C."`
	Engine        string `help:"auto: embed ClickHouse; off: no SQL." enum:"auto,off" default:"auto" env:"COURIER_ENGINE"`
	EngineLibrary string `help:"The ClickHouse engine's library, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
}

// What the demo measures: a full factorial design. The workload is small, so
// that all of it takes less than two minutes on two cores.
var (
	demoBatchSizes = []int{8, 16, 32, 64, 128}
	demoCPUs       = []int{1, 2}
)

const (
	demoAtOnce  = 2 // most jobs at once
	demoModel   = "digits-mlp"
	demoEpochs  = 8
	demoAugment = 28 // copies of each image per epoch
	demoOrders  = 3  // jobs with an SLO at the end
)

// demoJob is one line of the table.
type demoJob struct {
	SLOSeconds            float64          `json:"slo_seconds"`
	BatchSize             int              `json:"batch_size"`
	Decision              schemas.Decision `json:"decision"`
	PredictedSeconds      *float64         `json:"predicted_seconds"`
	MeasuredSeconds       float64          `json:"measured_seconds"`
	PredictedAccuracy     *float64         `json:"predicted_accuracy"`
	MeasuredAccuracy      *float64         `json:"measured_accuracy"`
	Met                   bool             `json:"met"`
	RandomBatchSize       int              `json:"random_batch_size"`
	RandomMeasuredSeconds float64          `json:"random_measured_seconds"`
	RandomMet             bool             `json:"random_met"`
}

// demoResult is what courier demo --output json prints.
type demoResult struct {
	Jobs    []demoJob `json:"jobs"`
	Skipped []string  `json:"skipped"`
}

func (c *demoCommand) Run(w *world) error {
	dir := c.Data
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "courier-demo-"); err != nil {
			return fmt.Errorf("create a data directory: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
	}
	d := &demo{c: c, w: w, random: rand.New(rand.NewPCG(c.Seed, 0))}
	f := localFlags{Data: dir, NATSPort: -1, HTTPPort: -1, ClickHouseHTTPPort: -1, ClickHouseTCPPort: -1, Engine: c.Engine, EngineLibrary: c.EngineLibrary,
		Interval: 2 * time.Second, admissionFlags: c.admissionFlags, trainerFlags: trainerFlags{NewEpochs: 1 << 30, Trees: 200, Seed: c.Seed}}
	if c.Slow {
		f.NewEpochs = 0 // as in a service
	}
	l, err := startLocal(w, f, d.say)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx) }()
	select {
	case <-l.advisor.Answering():
	case err := <-ended:
		return err
	}
	d.local = l
	err = d.run(ctx)
	if err == nil && c.Stay {
		d.say("stays up at %s, NATS at %s; Ctrl-C ends it", l.endpoints.HTTPURL, l.endpoints.NATSURL)
		<-ctx.Done()
	}
	cancel()
	if stopped := <-ended; err == nil {
		err = stopped
	}
	return err
}

// demo is one run of the story.
type demo struct {
	c      *demoCommand
	w      *world
	local  *local
	random *rand.Rand
	wrap   []string // command that starts the command of each job; nil: none
}

// say prints a line for people; JSON keeps stdout for itself.
func (d *demo) say(format string, args ...any) {
	if services.IsTerminal(d.w.stderr) {
		format = "\r\x1b[K" + format // the progress bar may stand there
	}
	fmt.Fprintf(d.w.stderr, format+"\n", args...)
}

func (d *demo) run(ctx context.Context) error {
	d.say("Courier is up: page %s, NATS %s", d.local.endpoints.HTTPURL, d.local.endpoints.NATSURL)
	alone, all, err := d.experiment(ctx)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := d.train(ctx); err != nil {
		return err
	}
	if d.c.Slow {
		return d.slow(ctx, all)
	}
	if d.c.Jobs > 0 {
		r, err := d.crowd(ctx, all)
		if err != nil {
			return fmt.Errorf("overlapping jobs: %w", err)
		}
		return d.printCrowd(r)
	}
	r, err := d.orders(ctx, slices.Min(alone), slices.Max(alone))
	if err != nil {
		return err
	}
	return d.print(r)
}

// orders runs the three jobs with SLOs.
func (d *demo) orders(ctx context.Context, fastest, slowest float64) (demoResult, error) {
	result := demoResult{Skipped: []string{}}
	d.say("")
	d.say("3. Three jobs with SLOs between the fastest (%.2f s) and the slowest (%.2f s) run, each also with a random batch size", fastest, slowest)
	for i := range demoOrders {
		// One SLO from each third, so that easy and hard ones occur.
		share := (float64(i) + d.random.Float64()) / demoOrders
		job, err := d.order(ctx, fastest+share*(slowest-fastest))
		if err != nil {
			return result, fmt.Errorf("job with an SLO: %w", err)
		}
		result.Jobs = append(result.Jobs, job)
	}
	d.local.mu.Lock()
	if why := d.local.sqlWhy; why != "" {
		result.Skipped = append(result.Skipped, "sql: "+why)
	} else if d.local.endpoints.ClickHouseHTTPURL == "" {
		result.Skipped = append(result.Skipped, "sql: the engine was not ready in time")
	}
	d.local.mu.Unlock()
	return result, nil
}

// experiment measures every setting of the design, and returns the response times
// of jobs alone on all CPUs, between which the SLOs of single jobs lie, and of all.
func (d *demo) experiment(ctx context.Context) (alone, all []float64, err error) {
	design := d.design()
	d.say("")
	d.say("1. Nothing is known yet: measure %d settings of a real training job (%s, %d epochs)", len(design), demoModel, demoEpochs)
	bar := newBar(d.w.stderr, len(design))
	for i, s := range design {
		bar.draw(i, fmt.Sprintf("batch %d, %d CPUs, %d at once", s.batch, s.cpus, s.jobs))
		results := make([]collector.JobResult, s.jobs)
		group, jobs := errgroup.WithContext(ctx)
		for k := range s.jobs {
			seed := d.random.Uint32()
			group.Go(func() error {
				r, err := d.jobSeeded(jobs, schemas.JobRequest{CPUs: schemas.CPUs{s.cpus}, Labels: map[string]string{"phase": "experiment"}}, s.batch, seed)
				results[k] = r
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, nil, err
		}
		for _, r := range results {
			all = append(all, response(r))
		}
		if s.jobs == 1 && s.cpus == slices.Max(demoCPUs) {
			alone = append(alone, response(results[0]))
		}
	}
	bar.draw(len(design), "done")
	bar.end()
	return alone, all, nil
}

// setting is one cell of the design.
type setting struct{ batch, cpus, jobs int }

// design is the full factorial in random order, so that a slow minute of the
// machine does not fall on one level alone.
func (d *demo) design() []setting {
	var all []setting
	most := demoAtOnce
	if d.c.Jobs > 0 {
		most = crowdAtOnce
	}
	for jobs := 1; jobs <= most; jobs++ {
		for _, cpus := range demoCPUs {
			for _, batch := range demoBatchSizes {
				all = append(all, setting{batch, cpus, jobs})
			}
		}
	}
	d.random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// train asks for regressors of all that was measured.
func (d *demo) train(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var reply schemas.TrainReply
	if err := d.local.bus.Request(ctx, schemas.SubjectRegressorTrain, &schemas.TrainRequest{Promote: true}, &reply); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	d.say("")
	d.say("2. Learn from it")
	for _, p := range reply.Promoted {
		d.say("   %s: %s of %d examples in %d settings, median error %.1f %%, fitted in %.2f s", p.Target, p.Family, p.Examples, p.Settings, 100*p.MedianAbsoluteRatio, p.FitSeconds)
	}
	for _, r := range reply.Rejected {
		d.say("   %s: not used, %s", r.Target, r.Reason)
	}
	for _, target := range []string{schemas.TargetEpochTime, schemas.TargetAccuracy} { // a start takes a second, and may depend on nothing
		if !slices.ContainsFunc(reply.Promoted, func(p schemas.Promoted) bool { return p.Target == target }) {
			return fmt.Errorf("train: no regressor of %s is worth using on a machine as busy as this one: try again when it is quieter %v", target, reply.Waiting)
		}
	}
	return d.awaitRegressors(ctx, reply)
}

// awaitRegressors returns when the advisor answers with the regressors.
func (d *demo) awaitRegressors(ctx context.Context, want schemas.TrainReply) error {
	q := demoRequest(schemas.JobRequest{CPUs: demoCPUs})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var a schemas.Advice
		if err := d.local.bus.Request(ctx, schemas.SubjectJobPredict, &q, &a); err != nil {
			return fmt.Errorf("await the regressors: %w", err)
		}
		missing := slices.ContainsFunc(want.Promoted, func(p schemas.Promoted) bool { return a.Regressors[p.Target] != p.ModelDigest })
		if !missing {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("await the regressors: %w", ctx.Err())
		}
	}
}

// demoRequest fills in what all jobs of the demo have in common.
func demoRequest(q schemas.JobRequest) schemas.JobRequest {
	q.Model, q.Epochs, q.BatchSizes, q.User = demoModel, demoEpochs, demoBatchSizes, "demo"
	return q
}

// order submits a job with an SLO, runs it as advised, and again with a batch
// size drawn at random.
func (d *demo) order(ctx context.Context, sloSeconds float64) (demoJob, error) {
	slo := time.Duration(sloSeconds * float64(time.Second)).Round(time.Millisecond)
	q := schemas.JobRequest{CPUs: schemas.CPUs{slices.Max(demoCPUs)}, SLO: schemas.Duration(slo), Labels: map[string]string{"phase": "advised"}}
	advised, err := d.job(ctx, q, 0)
	if err != nil {
		return demoJob{}, err
	}
	if advised.Advice == nil || advised.Advice.Chosen == nil {
		return demoJob{}, fmt.Errorf("job %s got no advice", advised.JobID)
	}
	chosen := advised.Advice.Chosen
	q.Labels = map[string]string{"phase": "random"}
	batch := demoBatchSizes[d.random.IntN(len(demoBatchSizes))]
	random, err := d.job(ctx, q, batch)
	if err != nil {
		return demoJob{}, err
	}
	j := demoJob{SLOSeconds: slo.Seconds(), BatchSize: int(chosen.BatchSize), Decision: advised.Advice.Decision, PredictedSeconds: chosen.PredictedSeconds,
		MeasuredSeconds: response(advised), PredictedAccuracy: chosen.PredictedAccuracy, MeasuredAccuracy: advised.Accuracy,
		RandomBatchSize: batch, RandomMeasuredSeconds: response(random)}
	j.Met, j.RandomMet = j.MeasuredSeconds <= j.SLOSeconds, j.RandomMeasuredSeconds <= j.SLOSeconds
	d.say("   SLO %5.2f s: %s; took %.2f s (batch size %d at random: %.2f s)", j.SLOSeconds, advised.Advice.Message, j.MeasuredSeconds, batch, j.RandomMeasuredSeconds)
	return j, nil
}

// response is the time that the SLO counts: from submission to the end.
func response(r collector.JobResult) float64 { return r.Ended.Sub(r.Submitted).Seconds() }

// job runs the workload as any user's command is run: in a process of its own,
// under courier run. batch 0 takes the advised one.
func (d *demo) job(ctx context.Context, q schemas.JobRequest, batch int) (collector.JobResult, error) {
	return d.jobSeeded(ctx, q, batch, d.random.Uint32())
}

// jobSeeded is job with the seed of the training.
func (d *demo) jobSeeded(ctx context.Context, q schemas.JobRequest, batch int, seed uint32) (collector.JobResult, error) {
	augment := demoAugment
	switch {
	case d.c.Slow:
		augment = slowAugment
	case d.c.Jobs > 0:
		augment = crowdAugment
	}
	program, err := os.Executable()
	if err != nil {
		return collector.JobResult{}, fmt.Errorf("find this program: %w", err)
	}
	node, err := schemas.LocalNodeName()
	if err != nil {
		return collector.JobResult{}, err
	}
	output := &tail{}
	r, err := collector.RunJob(ctx, collector.JobOptions{
		Request: demoRequest(q), Node: node, BatchSize: batch, NoPTY: true, Format: collector.FormatJSON, SpoolDir: filepath.Join(d.local.f.Data, "spool"),
		Command: append(slices.Clone(d.wrap), program, "workload", "digits", "--network", "mlp", "--batch-size", "{batch}", "--cpus", "{cpus}", "--epochs", "{epochs}",
			"--augment", fmt.Sprint(augment), "--seed", fmt.Sprint(seed)),
		Stdout: output, Stderr: output,
		Connect: func(context.Context) (*bus.Bus, error) { return d.local.bus, nil },
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return r, err
	}
	if r.ExitCode != 0 || len(r.Epochs) != demoEpochs {
		return r, fmt.Errorf("job %s ended with status %d after %d of %d epochs: %s", r.JobID, r.ExitCode, len(r.Epochs), demoEpochs, output)
	}
	return r, nil
}

// tail keeps the end of what a job printed, for an error message.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2000 {
		t.b = t.b[len(t.b)-1000:]
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }

func (d *demo) print(result demoResult) error {
	if d.c.Output == "json" {
		e := json.NewEncoder(d.w.stdout)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	t := tabwriter.NewWriter(d.w.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nSLO\tbatch\tdecision\tpredicted\tmeasured\tpredicted\tmeasured\tmet\trandom\tmeasured\tmet\t")
	fmt.Fprintln(t, "\tsize\t\ttime\ttime\taccuracy\taccuracy\t\tbatch\ttime\t\t")
	for _, j := range result.Jobs {
		fmt.Fprintf(t, "%.2f s\t%d\t%s\t%s\t%.2f s\t%s\t%s\t%s\t%d\t%.2f s\t%s\t\n", j.SLOSeconds, j.BatchSize, j.Decision, figure(j.PredictedSeconds, "%.2f s"), j.MeasuredSeconds,
			figure(j.PredictedAccuracy, "%.4f"), figure(j.MeasuredAccuracy, "%.4f"), yes(j.Met), j.RandomBatchSize, j.RandomMeasuredSeconds, yes(j.RandomMet))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range result.Skipped {
		fmt.Fprintln(d.w.stdout, "skipped:", s)
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
