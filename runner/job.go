package runner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"courier/runner/instrument"
	"courier/runner/output"
	"courier/runner/usage"
	"courier/schemas"
	"courier/spool"
)

// job is one run of a training job. It is owned by the goroutine of Run. Other goroutines send to
// it:
//
//	command ──bytes──► readers ──► screen
//	                            │ chunks
//	bus ──cancel, advice, risk──┤
//	signals, timers ────────────┴──► supervise ──► outbox ──► bus or spool file
type job struct {
	o      Options
	log    *slog.Logger
	screen *screen
	conn   *connection
	out    *spool.Outbox
	fleet  schemas.Fleet // hardware of the job's nodes, from their samples
	result Result

	startSetting schemas.Setting // before any move

	process   *jobProcess
	cgroup    *usage.Cgroup // of the process; nil: that of this process
	cgroupErr error         // why the process has none; nil: none was wanted, or it has one
	startedAt time.Time     // of the first process; has the monotonic clock
	stampedAt time.Time     // of the last event; has the monotonic clock
	signals   chan os.Signal
	killTimer <-chan time.Time // fires when a stopped process must be killed; nil: not stopped
	pinTimer  <-chan time.Time // fires when the job is pinned again; nil: it is pinned, or need not be

	channel       *sideChannel // nil: it could not be opened
	metrics       *metricsLog  // nil: Options.MetricsFile is empty
	channelOutput *output.Log  // of the lines of the side channel; nil: no client has connected
	// instrumentChannel has the messages of the instrumentation; nil: there is none. pythonPath is the
	// directory of its Python files.
	instrumentChannel *sideChannel
	pythonPath        string
	merge             *instrument.Merge
	output            *output.Parser
	epochs            *epochState
	used              usage.Totals // until the start of the current epoch
	progress          progressLine
	contact           Contact
	reservedUntil     time.Time // of the CPUs of an admitted job; has the monotonic clock; zero: none are
	hasHinted         bool      // the user was informed that no epoch is recognized
	isFirstReport     bool      // the process has not reported an epoch

	adaptation   *adaptation
	sharing      *adaptation        // of the CPUs; without means if they cannot change
	loading      *adaptation        // of the data loaders; without means if they cannot change
	resizer      resizer            // nil: the CPUs do not change in place
	resized      chan resizeOutcome // of the change under way
	isResizing   bool
	cancelResize context.CancelFunc
	directory    *runDirectory
	directoryErr error
	controlPath  string // path of the control file; empty: none
	control      controlFile
	fit          epochFit
	fitBatchSize uint32  // of the epochs of fit
	oomKills     float64 // of the machine, before the start
	lateReason   string  // why the job was asked to end; empty: it was not
	isRestarting bool    // the process was stopped for a restart
	restartErr   error   // why a restart failed
	stopReason   string  // why the process was stopped; empty: it was not
}

func newJob(o Options, log *slog.Logger) (*job, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	parser, err := output.New(o.EpochPattern)
	if err != nil {
		return nil, err
	}
	j := &job{
		merge:   instrument.NewMerge(),
		o:       o,
		log:     log,
		output:  parser,
		screen:  newScreen(o.Stdout, o.Stderr, o.Progress),
		fleet:   schemas.Fleet{},
		signals: make(chan os.Signal, 8),
		resized: make(chan resizeOutcome, 1),
	}
	if o.MetricsFile != "" {
		if j.metrics, err = newMetricsLog(o.MetricsFile); err != nil {
			return nil, fmt.Errorf("--metrics-file %q: %w", o.MetricsFile, err)
		}
	}
	return j, nil
}

// hintAtOptions prints the options that probably do not do what is wanted.
func (j *job) hintAtOptions() {
	if j.o.OmitHints {
		return
	}
	for _, name := range unknownPlaceholders(j.o.Command) {
		last := len(placeholders) - 1
		j.screen.message("the command has %s, which is not replaced: want %s or %s", name,
			strings.Join(placeholders[:last], ", "), placeholders[last])
	}
	hasWorkers := HasPlaceholder(j.o.Command, workersPlaceholder) || HasPlaceholder(j.o.Command, workersVariable)
	if j.o.Request.HasShapes() && !hasWorkers {
		j.screen.message("the command has no %s: it must read the number of workers from %s",
			workersPlaceholder, workersVariable)
	}
	isDocker := j.o.resizeMeans() == schemas.ByDocker
	if j.o.Container != "" && !(isDocker && j.o.Request.Elastic) {
		j.screen.message("--container %s has no effect: it needs --elastic, and --resize %s or %s",
			j.o.Container, ResizeDocker, ResizeDockerCap)
	}
	switch {
	case HasPlaceholder(j.o.Command, batchPlaceholder):
	case j.result.Setting.BatchSize == 0:
		j.screen.message("the command has no %s: its batch size is unknown unless it is measured; if it "+
			"reads %s, use --batch-sizes", batchPlaceholder, batchVariable)
	default:
		j.screen.message("the command has no %s: it must read the batch size from %s", batchPlaceholder, batchVariable)
	}
}

// start starts the command and publishes the start of the job.
func (j *job) start(ctx context.Context) error {
	j.hintAtOptions()
	if !HasPlaceholder(j.o.Command, cpusPlaceholder) {
		j.screen.message("the command has no %s: numerical libraries get %s, but nothing else "+
			"limits the job", cpusPlaceholder,
			schemas.FormatCount(uint64(j.result.Setting.CPUs), "thread"))
	}
	if j.directory, j.directoryErr = newRunDirectory(); j.directoryErr != nil {
		j.log.Debug("no directory", "error", j.directoryErr) // for example, in a container without /tmp
	}
	j.createCgroup()
	if err := j.startAdaptation(); err != nil {
		return err
	}
	started := j.startedEvent()
	isPublished, err := j.claim(ctx, started)
	if err != nil {
		return err
	}
	if j.o.ForwardSignals { // from here on, signals stop the job instead of this process
		signal.Notify(j.signals, forwardedSignals...)
	}
	notifyResize(j.signals)
	j.openChannels()
	if j.o.BeforeStart != nil {
		j.o.BeforeStart()
	}
	j.startedAt, j.oomKills = time.Now(), usage.OOMKills()
	if err := j.launch(0); err != nil {
		j.stopChannels()
		signal.Stop(j.signals)
		return err
	}

	s := &j.result.Setting
	j.startSetting = *s
	j.fit.wall = wallOf(j.result.Submitted, time.Duration(j.o.Request.SLO), os.Getenv(slurmEnd))
	j.result.Started, j.epochs = j.startedAt, newEpochState(j.startedAt)
	j.epochs.requested = s.Epochs
	j.output.SetEpochs(s.Epochs)
	j.output.SetStart(j.startedAt)
	j.progress = progressLine{
		epochs:    s.Epochs,
		batchSize: s.BatchSize,
		submitted: j.result.Submitted,
		slo:       time.Duration(j.o.Request.SLO),
	}
	j.progress.predict(j.result.Advice, j.result.Submitted)
	if !isPublished {
		j.out.Add(started)
	}
	j.log.Info("job started", "job", j.result.JobID, "run", j.result.Run, "batch_size", s.BatchSize, "cpus", s.CPUs)
	return nil
}

// startedEvent returns the event of the start.
func (j *job) startedEvent() *schemas.Started {
	s := &j.result.Setting
	e := &schemas.Started{
		JobStamp:         j.stamp(schemas.StartedID(j.result.JobID, j.result.Run)),
		Setting:          *s,
		NodeCores:        j.o.Observer.Hardware().Cores,
		HeartbeatSeconds: schemas.Heartbeat.Seconds(),
		Command:          filepath.Base(j.o.Command[0]),
		User:             j.o.Request.User,
		Moves:            j.supportedMoves(),
	}
	if end := wallOf(time.Time{}, 0, os.Getenv(slurmEnd)); end.After(e.At) {
		e.LimitSeconds = min(end.Sub(e.At).Seconds(), schemas.MaxLimitSeconds)
	}
	e.SetHardware(j.hardware())
	return e
}

// launch starts the program with the current configuration, after a number of completed epochs.
func (j *job) launch(epochsDone uint32) error {
	started := j.result.Setting
	started.CPUs = j.threads()
	s := &started
	env := environment(j.result.JobID, s, epochsDone, time.Duration(j.o.Request.SLO))
	if !HasPlaceholder(j.o.Command, cpusPlaceholder) {
		env = limitThreads(env, j.threads())
	}
	env = shortenSpins(env)
	env = append(env, j.o.Environment...)
	if j.controlPath != "" {
		env = append(env, controlVariable+"="+j.controlPath)
	}
	if j.channel != nil {
		env = append(env, channelVariable+"="+j.channel.path)
	}
	j.merge.BatchSize = s.BatchSize
	if j.instrumentChannel != nil {
		env = instrument.Environment(env, j.pythonPath, j.instrumentChannel.path)
	}
	j.o.Observer.Load(&schemas.Epoch{}) // the load of the first epoch is measured from here
	j.used = usage.Started(j.cgroup)
	start := func() (*jobProcess, error) {
		cmd := newCommand(filledCommand(j.o.Command, s, epochsDone), env, j.o.Stdin)
		return startProcess(cmd, j.cgroup, !j.o.NoPTY, j.terminalSize(), j.screen.write)
	}

	p, err := start()
	if err != nil && j.cgroup != nil { // a missing permission may show only here
		j.log.Debug("job not started in its own cgroup", "error", err)
		j.removeCgroup()
		if _, ok := j.resizer.(*cgroupResizer); ok {
			j.resizer, j.sharing.means = nil, ""
		}
		j.used = usage.Started(nil)
		p, err = start()
	}
	if err != nil {
		return err
	}
	if p.terminalErr != nil {
		j.log.Debug("job runs on pipes", "reason", p.terminalErr)
	}
	j.process, j.isFirstReport = p, true
	j.pin()
	return nil
}

// terminalSize returns the size of the job's terminal.
func (j *job) terminalSize() windowSize {
	return sizeOf(j.o.Stdout, j.o.Stderr, j.o.Stdin)
}

// createCgroup creates a cgroup for the command if that is permitted.
func (j *job) createCgroup() {
	if j.o.NoCgroup {
		return
	}
	sharesCPUs := j.isElastic() && (j.o.Resize == ResizeWeight || j.o.Resize == ResizeCap)
	c, err := usage.NewCgroup(fmt.Sprintf("%s-%d", j.result.JobID, j.result.Run), sharesCPUs)
	if err != nil {
		j.log.Debug("no cgroup created for the job", "reason", err)
		j.cgroupErr = err
		return
	}
	j.cgroup = c
}

// removeCgroup removes the cgroup of the command, unless it still has processes, and releases its CPUs.
func (j *job) removeCgroup() {
	j.releaseCPUs()
	if err := j.cgroup.Remove(); err != nil {
		j.log.Debug("cgroup of the job not removed", "error", err)
	}
	j.cgroup = nil
}

// stamp returns the stamp of the next event.
func (j *job) stamp(eventID string) schemas.JobStamp {
	now := time.Now()
	j.stampedAt = afterStamp(j.stampedAt, now.Sub(j.stampedAt), now)
	return schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: eventID, At: j.stampedAt.UTC()},
		JobID: j.result.JobID,
		Run:   j.result.Run,
	}
}

// afterStamp returns the time of an event that follows the last one after an interval. If the clock of the
// node was set back, the time continues from the last event. Otherwise the advisor would assign the event to
// an earlier run, and report the job as lost.
func afterStamp(last time.Time, elapsed time.Duration, now time.Time) time.Time {
	if next := last.Add(elapsed); !last.IsZero() && next.Round(0).After(now.Round(0)) {
		return next
	}
	return now
}
