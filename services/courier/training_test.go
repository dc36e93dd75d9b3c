package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/collector"
	"courier/runner"
	"courier/schemas"
	"courier/workloads/digits"
)

// clockedRole is the first argument of a test binary that trains on the digits with a simulated
// clock. The flags of the workload follow.
const clockedRole = "digits-by-a-clock-of-tests"

func init() {
	if len(os.Args) > 2 && os.Args[1] == clockedRole {
		if err := clockedDigits(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// clockedCommand returns the command that trains a perceptron like the workload in a separate
// process.
func clockedCommand(t testing.TB) []string {
	t.Helper()
	return []string{
		program(t), clockedRole, "{cpus}",
		"--batch-size", "{batch}", "--cpus", "{cpus}", "--epochs", "{epochs}",
		"--augment", "1",
	}
}

// clockedDigits trains a real network, but reports the times of epochSeconds, regardless of the load
// of the machine. It reports each epoch after it has read a line of input with a factor for the time
// of the epoch. At the end of the input the factor is 1.
func clockedDigits(cpus string, args []string) error {
	n, err := strconv.ParseFloat(cpus, 64)
	if err != nil {
		return err
	}
	return digits.Run(context.Background(), args, &clockedEpochs{
		cpus:   n,
		slower: 1,
		input:  bufio.NewScanner(os.Stdin),
	})
}

// clockedEpochs replaces the durations in the output of a training.
type clockedEpochs struct {
	cpus   float64
	slower float64
	input  *bufio.Scanner
}

// Write converts the line of an epoch. The training waits for it before the next epoch.
func (c *clockedEpochs) Write(text []byte) (int, error) {
	line := map[string]any{}
	if err := json.Unmarshal(text, &line); err != nil {
		return 0, err
	}
	if c.input.Scan() {
		slower, err := strconv.ParseFloat(c.input.Text(), 64)
		if err != nil {
			return 0, err
		}
		c.slower = slower
	}
	batch, _ := line["batch_size"].(float64)
	epoch, _ := line["epoch"].(float64)
	line["seconds"] = c.slower * epochSeconds(batch, c.cpus, epoch)
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return 0, err
	}
	return len(text), nil
}

// epochSeconds returns minutes, so that the actual time of a test does not matter. Epochs of a run
// differ by some percent.
func epochSeconds(batch, cpus, epoch float64) float64 {
	scatter := 1 + 0.01*float64(int(epoch)%3-1)
	return (20 + 1120/batch) / cpus * scatter
}

// digitsJob runs a real training job under courier run. Its durations come from epochSeconds, so
// regressors can always learn them.
func digitsJob(t testing.TB, b *bus.Bus, q schemas.JobRequest, batch int) runner.Result {
	t.Helper()
	return runClocked(t, b, runner.Options{Request: q, BatchSize: batch})
}

// runClocked runs a clocked training under courier run.
func runClocked(t testing.TB, b *bus.Bus, o runner.Options) runner.Result {
	t.Helper()
	output := bustest.NewBuffer()
	if o.Stderr == nil {
		o.Stdout, o.Stderr = output, output
	}
	o.Request.Model, o.Command, o.NoPTY = digitsModel, clockedCommand(t), true
	o.Patience = patience
	if o.Observer == nil {
		o.Observer = collector.NewObserver(slog.New(slog.DiscardHandler))
	}
	o.SpoolDir = filepath.Join(t.TempDir(), "spool")
	o.Connect = func(context.Context) (*bus.Bus, error) { return b, nil }
	r, err := runner.Run(within(t, patience), o, slog.New(slog.DiscardHandler))
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("job %s: exit code %d, error %v, want 0\n%s",
			r.JobID, r.ExitCode, err, output.String())
	}
	return r
}

// learn runs jobs, and promotes regressors of them. The trainer stops once, when the tables are
// ready, and starts again with them.
func learn(t testing.TB, b *bus.Bus, jobs func()) (reply schemas.TrainReply) {
	t.Helper()
	jobs()
	request := schemas.TrainRequest{}
	var err error
	await(t, "the trainer", func() bool {
		err = b.Request(within(t, patience), schemas.SubjectRegressorTrain, &request, &reply)
		return !errors.Is(err, schemas.ErrUnavailable)
	})
	if err != nil || len(reply.Promoted) < 2 {
		t.Fatalf("train = %+v, %v, want at least epoch time and accuracy", reply, err)
	}
	return reply
}
