package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/spool"
)

// Values of Options.Adapt: how a running job changes to an advised batch size.
const (
	AdaptOff     = "off"             // it does not change
	AdaptControl = schemas.ByControl // it reads the control file between epochs
	AdaptRestart = schemas.ByRestart // it is restarted from its checkpoint after an epoch
)

var adaptValues = []string{AdaptOff, AdaptControl, AdaptRestart}

// Options are the options of Run.
type Options struct {
	// Request is the request to the advisor. Run sets these fields if they are empty: the job ID,
	// the nodes (this node) and the user (the current one).
	Request schemas.JobRequest

	// Node is the name of this node; default schemas.LocalNodeName.
	Node string

	// Command is the program with its arguments. Run replaces {batch}, {cpus}, {workers}, {loaders},
	// {epochs}, and {epoch} (the number of completed epochs).
	Command []string

	// Adapt is how the job changes to an advised batch size or number of data loaders; default AdaptOff.
	Adapt string

	// BatchSize is the initial batch size instead of the advised one; 0: the advised one. It is the only
	// choice if Request has no others and Adapt is AdaptOff. Without it, the batch size is unknown if the
	// command has neither {batch} nor COURIER_BATCH_SIZE.
	BatchSize int

	// Resize is how the CPUs of a running job change if Request.Elastic is set; default ResizeWeight.
	Resize string
	// Container is the Docker container that the command starts, for ResizeDocker and ResizeDockerCap.
	Container string

	// StopWhenLate ends the job cleanly before an epoch that would probably end after the deadline
	// of the SLO or after Slurm's time limit; default StopOff.
	StopWhenLate string

	// StopWhenLost stops the job when no heartbeat has reached NATS for schemas.Silence. Without it, the
	// job goes on.
	StopWhenLost bool

	EpochPattern string // regular expression for lines of other forms

	// MetricsFile is a file, a directory or a pattern of files that the job's logger writes: CSV
	// with a column "epoch", or JSON lines. If it is set, epochs are not read from the output.
	MetricsFile string

	// OmitHints leaves out the messages about missing advice, a missing {batch} and events that were
	// not published, for a caller that sets the configuration of the command and keeps its epochs.
	OmitHints bool

	// NoInstrument starts Python trainings without the instrumentation of package instrument.
	NoInstrument bool

	// KeepOutput records the last lines of the output with the end of the run.
	KeepOutput bool

	PageURL string // of the web page, for the address of the job at the end; "": unknown

	NoPTY    bool         // run on pipes instead of a pseudo terminal
	NoCgroup bool         // run in the cgroup of this process
	Observer NodeObserver // measures this node; nil: its load and CPU model are unknown

	Stdin  *os.File  // of the command; nil: empty
	Stdout io.Writer // receives the output, on a pseudo terminal also the error output; nil: discarded
	Stderr io.Writer // receives the error output, messages and the progress bar; nil: discarded

	Progress       bool          // show a progress bar if Stderr is a terminal
	ForwardSignals bool          // forward signals of this process; they must not cancel the context
	Address        string        // of NATS, as bus.Bus.Address; if it is never reached, events wait for it
	SpoolDir       string        // directory for unpublished events; default spool.DefaultDir
	Patience       time.Duration // maximum wait for NATS and the advisor; default 5 s
	Grace          time.Duration // time between SIGTERM and SIGKILL; default 10 s

	// BeforeStart is called directly before the command starts, for example to start several jobs
	// together; nil: nothing is called.
	BeforeStart func()

	// Environment is added to that of the command.
	Environment []string

	// OnEpoch is called with each epoch, before it is published. The job does not wait for an epoch
	// meanwhile, but its output is read only afterwards. Nil: nothing is called.
	OnEpoch func(*schemas.Epoch)

	// Connect connects to NATS, and retries until its context ends. Run calls it once, in another
	// goroutine, and does not close the bus. Nil: NATS is not used, and events stay in SpoolDir.
	Connect func(ctx context.Context) (*bus.Bus, error)
}

// Result describes a run of a job.
type Result struct {
	JobID          string
	Run            uint32          // number of the run, see Run
	Advice         *schemas.Advice // nil: the advisor was unreachable
	Setting        schemas.Setting // what it ran with, including the final batch size
	Epochs         []schemas.Epoch // in order
	Moves          []schemas.Moved // changes of the batch size, in order
	Submitted      time.Time
	Started        time.Time // zero: the command was not started
	Ended          time.Time // zero: the command was not started
	ExitCode       int       // of the command; 128 + number if a signal ended it
	Accuracy       *float64  // of the last epoch that reported one; nil: none did
	Cancelled      bool      // stopped by job.cancel, a signal, or the end of the context
	StartupSeconds *float64  // until the first epoch; nil: unknown
	Spooled        int       // events in SpoolDir, which the next run publishes
}

const (
	defaultPatience = 5 * time.Second
	defaultGrace    = 10 * time.Second
)

// withDefaults returns the options with defaults for empty fields.
func (o Options) withDefaults() (Options, error) {
	if o.Node == "" {
		name, err := schemas.LocalNodeName()
		if err != nil {
			return o, err
		}
		o.Node = name
	}
	o.Stdout, o.Stderr = cmp.Or(o.Stdout, io.Discard), cmp.Or(o.Stderr, io.Discard)
	o.SpoolDir = cmp.Or(o.SpoolDir, spool.DefaultDir())
	o.Adapt = cmp.Or(o.Adapt, AdaptOff)
	o.Resize = cmp.Or(o.Resize, ResizeWeight)
	o.StopWhenLate = cmp.Or(o.StopWhenLate, StopOff)
	o.Observer = cmp.Or[NodeObserver](o.Observer, unobservedNode{})
	o.Patience = cmp.Or(max(o.Patience, 0), defaultPatience)
	o.Grace = cmp.Or(max(o.Grace, 0), defaultGrace)
	if len(o.Request.BatchSizes) == 0 && o.Adapt == AdaptOff && (o.BatchSize > 0 || !o.takesBatchSize()) {
		o.Request.BatchSizes = []int{o.BatchSize} // the advice is about what runs
	}
	if len(o.Request.Nodes) == 0 {
		o.Request.Nodes, o.Request.NewNodes = []string{o.Node}, true // it runs here
	}
	if o.Request.User == "" {
		if u, err := user.Current(); err == nil {
			o.Request.User = u.Username
		}
	}
	return o, nil
}

// takesBatchSize reports whether the command uses the batch size that it is given.
func (o *Options) takesBatchSize() bool {
	return HasPlaceholder(o.Command, batchPlaceholder) || HasPlaceholder(o.Command, batchVariable)
}

// validate checks the options before anything starts.
func (o *Options) validate() error {
	if err := o.Request.Validate(); err != nil {
		return err
	}
	err := errors.Join(
		schemas.OneOf("adapt", o.Adapt, adaptValues...),
		schemas.OneOf("resize", o.Resize, resizeValues...),
		schemas.OneOf("stop_when_late", o.StopWhenLate, stopValues...),
	)
	switch {
	case err != nil:
		return err
	case !schemas.ValidToken(o.Node):
		return schemas.Invalid("node", "%q is not a name of 1 to %d characters a-z, 0-9, _ and -",
			o.Node, schemas.MaxTokenLength)
	case o.BatchSize < 0 || o.BatchSize > schemas.MaxBatchSize:
		return schemas.Invalid("batch_size", "%d is not between 1 and %d", o.BatchSize, schemas.MaxBatchSize)
	case o.resizeMeans() == schemas.ByDocker && o.Container == "":
		return schemas.Invalid("container", "missing; want the name of the container that the command starts")
	case o.Resize == ResizeRestart && o.Request.Elastic && !HasPlaceholder(o.Command, cpusPlaceholder):
		return schemas.Invalid("resize", "%s requires %s in the command, otherwise nothing changes",
			ResizeRestart, cpusPlaceholder)
	case o.Adapt == AdaptRestart && !HasPlaceholder(o.Command, batchPlaceholder) &&
		!HasPlaceholder(o.Command, loadersPlaceholder):
		return schemas.Invalid("adapt", "%s requires %s or %s in the command, otherwise nothing changes",
			AdaptRestart, batchPlaceholder, loadersPlaceholder)
	case len(o.Command) == 0 || o.Command[0] == "":
		return schemas.Invalid("command", "missing: give the program and its arguments after --")
	}
	if _, err := exec.LookPath(o.Command[0]); err != nil && !errors.Is(err, exec.ErrDot) {
		return fmt.Errorf("find the program: %w", err)
	}
	return nil
}

// newJobID returns a unique ID for a job of the model.
func newJobID(model string) string {
	name := strings.Trim(schemas.NodeName(model), "-")
	return name[:min(len(name), 40)] + "-" + strings.ToLower(rand.Text()[:12])
}

// runNumberOrigin is where run numbers start that the advisor did not assign.
var runNumberOrigin = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// unassignedRunNumber returns the number of a run if the advisor is unreachable.
func unassignedRunNumber(now time.Time) uint32 {
	return uint32(now.Sub(runNumberOrigin) / time.Second)
}
