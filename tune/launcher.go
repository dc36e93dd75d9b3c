package tune

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"courier/runner"
	"courier/schemas"
)

// Placeholders of a tuning in a command, besides those of the parameters. Package runner replaces
// {epochs} and {cpus}.
const (
	epochPlaceholder  = "{epoch}" // completed epochs
	trialPlaceholder  = "{trial}"
	dirPlaceholder    = "{dir}"
	epochsPlaceholder = "{epochs}"
	cpusPlaceholder   = "{cpus}"
)

// Launcher measures segments by running the command of a tuning on this node.
type Launcher struct {
	Dir     string         // of the tuning, for the output and the checkpoints of the trials
	Options Options        // of the tuning
	Job     runner.Options // of each segment: node, formats, observer
	Log     *slog.Logger
}

// logPath returns the file with the output of a segment.
func (l *Launcher) logPath(g *Segment) string {
	name := fmt.Sprintf("%03d-trial-%d-stage-%d.log", g.ID, g.Trial, g.Stage+1)
	if g.IsProbe {
		name = fmt.Sprintf("%03d-trial-%d-probe-%d-cpus.log", g.ID, g.Trial, g.CPUs)
	}
	return filepath.Join(l.Dir, "logs", name)
}

// trialDir returns the directory of a trial for its checkpoints. A probe has one of its own, so that
// it does not change the trial.
func trialDir(dir string, g *Segment) string {
	name := strconv.Itoa(g.Trial)
	if g.IsProbe {
		name = fmt.Sprintf("%d-probe-%d-cpus", g.Trial, g.CPUs)
	}
	return filepath.Join(dir, "trials", name)
}

// Measure runs a segment. It is a Measure.
func (l *Launcher) Measure(ctx context.Context, g Segment, values []string, report func(TrialEpoch)) (Ending, error) {
	path, dir := l.logPath(&g), trialDir(l.Dir, &g)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.MkdirAll(dir, 0o755)); err != nil {
		return Ending{}, err
	}
	out, err := os.Create(path)
	if err != nil {
		return Ending{}, err
	}
	var messages bytes.Buffer
	o := l.options(&g, dir, values)
	o.Stdout, o.Stderr = out, &messages
	hasStart := false
	o.OnEpoch = func(e *schemas.Epoch) {
		hasStart = hasStart || e.DurationSource == schemas.DurationArrival
		report(TrialEpoch{int(e.Epoch), e.DurationSeconds, finite(e.Loss), finite(e.Accuracy)})
	}
	r, err := runner.Run(ctx, o, l.Log)
	if err != nil && ctx.Err() == nil {
		return Ending{}, errors.Join(fmt.Errorf("trial %d: %w", g.Trial, err), out.Close())
	}
	e := l.ending(ctx, &r, path)
	e.HasStartInEpoch = hasStart && r.StartupSeconds == nil
	_, err = messages.WriteTo(out)
	err = errors.Join(err, out.Close())
	if g.IsProbe {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return e, err
}

// ending describes how a command ended.
func (l *Launcher) ending(ctx context.Context, r *runner.Result, path string) Ending {
	if r.Started.IsZero() {
		return Ending{Outcome: OutcomeStopped}
	}
	e := Ending{Outcome: OutcomeDone, Seconds: max(0, r.Ended.Sub(r.Started).Seconds())}
	switch {
	case r.Cancelled && ctx.Err() != nil:
		e.Outcome = OutcomeStopped
	case r.ExitCode != 0 || r.Cancelled:
		e.Outcome = OutcomeFailed
		e.Reason = fmt.Sprintf("exit code %d: %s", r.ExitCode, cmp.Or(lastLine(path), "no output"))
	}
	return e
}

// finite returns a figure unless it is infinite or not a number, as of a diverged training.
func finite(v *float64) *float64 {
	if v == nil || math.IsInf(*v, 0) || math.IsNaN(*v) {
		return nil
	}
	return v
}

// maxReasonBytes of the output of a failed command.
const maxReasonBytes = 200

// lastLine returns the last line of a file that has text.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(data), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		text := strings.TrimSpace(lines[i])
		if text != "" {
			return strings.ToValidUTF8(text[:min(len(text), maxReasonBytes)], "?")
		}
	}
	return ""
}

// options returns the options of the run of a segment.
func (l *Launcher) options(g *Segment, dir string, values []string) runner.Options {
	o := l.Job
	o.Environment = append(o.Environment[:len(o.Environment):len(o.Environment)],
		"COURIER_EPOCHS_DONE="+strconv.Itoa(g.From),
	)
	o.BatchSize = 1 // its events are not published
	for i, p := range l.Options.Space {
		if n, err := strconv.Atoi(values[i]); p.Name == "batch" && err == nil && n > 0 && n <= schemas.MaxBatchSize {
			o.BatchSize = n
		}
	}
	o.Command = l.Options.filled(l.Options.Command, g, dir, values)
	o.MetricsFile = l.Options.filled([]string{o.MetricsFile}, g, dir, values)[0]
	o.Request = schemas.JobRequest{
		Model:      "tuning",
		BatchSizes: []int{o.BatchSize},
		CPUs:       schemas.CPUs{g.CPUs},
		Epochs:     g.Epochs,
		User:       l.Job.Request.User,
	}
	o.SpoolDir = filepath.Join(l.Dir, "spool")
	o.Grace = max(l.Options.withDefaults().Grace, time.Millisecond)
	o.NoPTY, o.OmitHints = true, true
	return o
}

// filled replaces the placeholders of the tuning in some arguments.
func (o *Options) filled(arguments []string, g *Segment, dir string, values []string) []string {
	pairs := []string{
		epochPlaceholder, strconv.Itoa(g.From), trialPlaceholder, strconv.Itoa(g.Trial), dirPlaceholder, dir,
	}
	for i, p := range o.Space {
		pairs = append(pairs, "{"+p.Name+"}", values[i])
	}
	return runner.FillPlaceholders(arguments, pairs...)
}
