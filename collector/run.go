package collector

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// JobOptions says what RunJob runs, and how.
type JobOptions struct {
	Request schemas.JobRequest // what is asked of the advisor; absent: id (made here), nodes (this one), user (the present one)
	Node    string             // name of this node; default schemas.LocalNodeName
	Command []string           // program and arguments, with {batch}, {cpus}, {epochs} and {epoch}, those done, where the numbers go

	Adapt        string // how an advised batch size is taken while the command runs: AdaptOff, AdaptControl or AdaptRestart; default AdaptOff
	BatchSize    int    // above 0: begin with this batch size, whatever is advised
	Format       string // of the output, one of Formats; default FormatAuto
	EpochPattern string // regular expression for FormatPattern, with the named group epoch, and seconds, loss, accuracy where there are any
	NoPTY        bool   // run on pipes instead of a pseudo terminal
	NoCgroup     bool   // leave the command in our cgroup, even where it could have one of its own

	Stdin  *os.File  // of the command; nil: nothing to read
	Stdout io.Writer // takes the command's output unchanged; on a pseudo terminal its errors too; nil: discarded
	Stderr io.Writer // takes the command's errors, the advice, messages and the progress bar; nil: discarded

	Progress       bool          // draw a progress bar where Stderr is a terminal
	ForwardSignals bool          // signals to this process go to the command; hand a ctx that they do not end
	SpoolDir       string        // keeps events that could not be published; default DefaultSpoolDir
	Patience       time.Duration // for NATS and the advisor before the command starts without advice; default 5 s
	Grace          time.Duration // for a cancelled command between SIGTERM and SIGKILL; default 10 s

	// Connect connects to the bus and tries again until its ctx ends. RunJob
	// calls it once, in a goroutine, and does not close what it returns.
	// Nil: no bus, the events stay in the spool.
	Connect func(ctx context.Context) (*bus.Bus, error)
}

// JobResult is what became of a job.
type JobResult struct {
	JobID     string
	Run       uint32          // counts starts of the same job; see RunJob
	Advice    *schemas.Advice // nil: the advisor could not be asked
	Setting   schemas.Setting // what it ran with, the batch size at last
	Epochs    []schemas.Epoch // in order
	Moves     []schemas.Moved // what became of advised changes of the batch size, in order
	Submitted time.Time       // when the advice was asked for
	Started   time.Time       // zero: never
	Ended     time.Time       // zero: never started
	ExitCode  int             // of the command; 128 + number for one that a signal ended
	Accuracy  *float64        // of the last epoch that told it
	Cancelled bool            // it was asked to end: by job.cancel, a signal, or the end of ctx
	Spooled   int             // events that wait on disk for the next run
}

const (
	defaultPatience = 5 * time.Second
	defaultGrace    = 10 * time.Second
	finishTimeout   = 5 * time.Second // to publish what is left when the command has ended
)

// RunJob submits a job, starts its command with the advised numbers, watches it,
// publishes its life, and returns when it has ended. Without the bus or the
// advisor the command runs all the same, with the first batch size, or BatchSize.
// A command that fails is no error: see ExitCode. Errors are what kept the
// command from starting: wrong options, a request that the advisor refuses
// (*schemas.Error), a program that is not there. When ctx ends, the command is
// asked to end and killed after Grace.
//
// Runs of a job are counted by the advisor. Where it cannot be asked about a job
// that may have run before, the run's number is the seconds since 2020, which no
// count reaches, so that the events of two runs never share an identity.
func RunJob(ctx context.Context, o JobOptions, log *slog.Logger) (JobResult, error) {
	j, err := newJob(o, log)
	if err != nil {
		return JobResult{JobID: o.Request.JobID}, err
	}
	alive, end := context.WithCancel(context.WithoutCancel(ctx)) // of what outlives a cancelled job for a moment
	defer end()
	j.link = connect(alive, j.o.Connect, j.o.SpoolDir, log)
	defer func() { end(); j.link.wait() }()

	if err := j.submit(ctx); err != nil {
		return j.result, err
	}
	defer j.dropControl()
	defer j.unplace()
	j.link.watch(alive, j.result.JobID)
	j.out = newOutbox(j.o.SpoolDir, j.result.JobID, j.result.Run, log)
	go j.out.run(alive, j.link.connected)
	err = j.start()
	if err == nil {
		j.watch(ctx)
	}
	j.conclude(err)

	deadline := time.AfterFunc(finishTimeout, end)
	defer deadline.Stop()
	j.link.finish(alive)
	if j.result.Spooled = j.out.finish(); j.result.Spooled > 0 {
		j.screen.say("%d events could not be published; they wait in %s for the next courier run", j.result.Spooled, j.out.spool.path)
	}
	if lost := j.out.lost.Load(); lost > 0 {
		j.screen.say("%d events are lost: neither nats nor the disk took them", lost)
	}
	return j.result, err
}

// withDefaults fills in what was left out.
func (o JobOptions) withDefaults() (JobOptions, error) {
	if o.Node == "" {
		name, err := schemas.LocalNodeName()
		if err != nil {
			return o, err
		}
		o.Node = name
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.SpoolDir == "" {
		o.SpoolDir = DefaultSpoolDir()
	}
	if o.Adapt == "" {
		o.Adapt = AdaptOff
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	if len(o.Request.Nodes) == 0 {
		o.Request.Nodes = []string{o.Node}
	}
	if o.Request.User == "" {
		if u, err := user.Current(); err == nil {
			o.Request.User = u.Username
		}
	}
	return o, nil
}

// validate checks everything that a user can get wrong, before anything starts.
func (o *JobOptions) validate() error {
	if err := o.Request.Validate(); err != nil {
		return err
	}
	if !schemas.ValidToken(o.Node) {
		return schemas.Invalid("node", "%q is not a name of 1 to %d of a-z, 0-9, _ and -", o.Node, schemas.MaxTokenLength)
	}
	if o.BatchSize < 0 || o.BatchSize > schemas.MaxBatchSize {
		return schemas.Invalid("batch_size", "%d is not between 1 and %d", o.BatchSize, schemas.MaxBatchSize)
	}
	if !slices.Contains(Adapts(), o.Adapt) {
		return schemas.Invalid("adapt", "%q is not one of %v", o.Adapt, Adapts())
	}
	if o.Adapt == AdaptRestart && !takesBatch(o.Command) {
		return schemas.Invalid("adapt", "%s needs %s in the command: started again without it, nothing would change", AdaptRestart, placeholderBatch)
	}
	if len(o.Command) == 0 || o.Command[0] == "" {
		return schemas.Invalid("command", "is missing: the program to run, after --")
	}
	if _, err := exec.LookPath(o.Command[0]); err != nil && !errors.Is(err, exec.ErrDot) {
		return fmt.Errorf("find the program: %w", err)
	}
	return nil
}

// newJobID makes an identity for a job of the model that no other job has.
func newJobID(model string) string {
	name := strings.Trim(schemas.NodeName(model), "-")
	return name[:min(len(name), 40)] + "-" + strings.ToLower(rand.Text()[:12])
}

// epochOfRuns is where run numbers are counted from that no advisor gave.
var epochOfRuns = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// unknownRun returns the number of a run that nobody could count.
func unknownRun(now time.Time) uint32 { return uint32(now.Sub(epochOfRuns) / time.Second) }
