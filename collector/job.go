package collector

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"courier/schemas"
)

// job is one run of a training command. The goroutine of RunJob owns it; the
// others hand it what they read:
//
//	command ──bytes──► readers ──► screen
//	                            │ chunks
//	bus ──cancel, advice, risk──┤
//	signals, timers ────────────┴──► watch ──► outbox ──► bus or spool
type job struct {
	o        JobOptions
	log      *slog.Logger
	screen   *screen
	output   *output
	observer *Observer
	fleet    schemas.Fleet // what samples told of the job's nodes
	link     *link
	out      *outbox
	result   JobResult

	command   *command
	kill      <-chan time.Time // when to kill a command that was asked to end; nil: it was not
	mover     *mover
	control   string // path of the control file; "": none
	stopping  bool   // the command ends to be started again
	fresh     bool   // the command has told no epoch since it was started
	broken    error  // why it could not be started again
	signals   chan os.Signal
	epochs    *epochs
	progress  progress
	started   time.Time   // carries the monotonic clock
	mark      Mark        // where the running epoch began
	used      consumption // until then
	placement *placement  // the command's cgroup; nil: it stays in ours
	beats     int
	hinted    bool
	warned    bool
	reason    string // why the command was asked to end; "" if it was not
}

func newJob(o JobOptions, log *slog.Logger) (*job, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	out, err := newOutput(o.Format, o.EpochPattern)
	if err != nil {
		return nil, err
	}
	return &job{o: o, log: log, output: out, screen: newScreen(o.Stdout, o.Stderr, o.Progress), observer: NewObserver(log), fleet: schemas.Fleet{},
		signals: make(chan os.Signal, 8)}, nil
}

// start starts the command and publishes that it did.
func (j *job) start() error {
	s := &j.result.Setting
	if !takesBatch(j.o.Command) {
		j.screen.say("the command has no %s: it must take its batch size from COURIER_BATCH_SIZE", placeholderBatch)
	}
	if err := j.adapt(); err != nil {
		return err
	}
	if j.o.ForwardSignals { // from here on none ends us instead of the job
		signal.Notify(j.signals, forwarded...)
	}
	notifyResize(j.signals)
	j.place()
	j.started = time.Now()
	if err := j.launch(0); err != nil {
		signal.Stop(j.signals)
		return err
	}
	j.result.Started, j.epochs = j.started, newEpochs(j.started)
	j.progress = progress{epochs: s.Epochs, batchSize: s.BatchSize, submitted: j.result.Submitted, slo: time.Duration(j.o.Request.SLO)}
	j.progress.advise(j.result.Advice, j.result.Submitted)
	e := &schemas.Started{JobStamp: j.stamp(schemas.StartedID(j.result.JobID, j.result.Run)), Setting: *s,
		NodeCores: j.mark.reading.cores(), HeartbeatSeconds: schemas.Heartbeat.Seconds(),
		Command: filepath.Base(j.o.Command[0]), User: j.o.Request.User, Moves: j.moves()}
	e.SetHardware(j.hardware())
	j.out.add(e)
	j.log.Info("job started", "job", j.result.JobID, "run", j.result.Run, "batch_size", s.BatchSize, "cpus", s.CPUs)
	return nil
}

// launch starts the program with the present numbers, after some epochs.
func (j *job) launch(done uint32) error {
	s := &j.result.Setting
	env := environment(os.Environ(), j.result.JobID, s, done, time.Duration(j.o.Request.SLO))
	if j.control != "" {
		env = append(env, controlVariable+"="+j.control)
	}
	j.mark, j.used = j.observer.Mark(), j.nothing()
	start := func() (*command, error) {
		cmd := newCommand(fill(j.o.Command, s, done), env, j.o.Stdin)
		return startCommand(cmd, j.placement, !j.o.NoPTY, sizeOf(j.o.Stdout, j.o.Stderr, j.o.Stdin), j.screen.write)
	}
	c, err := start()
	if err != nil && j.placement != nil { // perhaps for want of a right that only the start shows
		j.log.Debug("job does not start in a cgroup of its own", "error", err)
		j.unplace()
		j.used = j.nothing()
		c, err = start()
	}
	if err != nil {
		return err
	}
	if c.noTerminal != nil {
		j.log.Debug("job runs on pipes", "reason", c.noTerminal)
	}
	j.command, j.fresh = c, true
	return nil
}

// nothing is what a command took that is about to start. A cgroup may have
// counted another one before.
func (j *job) nothing() consumption {
	c := consumption{at: time.Now(), tree: nothingUsed(), waits: &waits{}, group: j.placement.group()}
	c.counted, c.pressure = c.group.read()
	return c
}

// place makes a cgroup for the command where that is permitted.
func (j *job) place() {
	if j.o.NoCgroup {
		return
	}
	p, err := newPlacement(fmt.Sprintf("%s-%d", j.result.JobID, j.result.Run))
	if err != nil {
		j.log.Debug("job gets no cgroup of its own", "reason", err)
		return
	}
	j.placement = p
}

// unplace removes the command's cgroup. One in which processes are left stays.
func (j *job) unplace() {
	if err := j.placement.remove(); err != nil {
		j.log.Debug("cgroup of the job is left", "error", err)
	}
	j.placement = nil
}

func (j *job) stamp(id string) schemas.JobStamp {
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: time.Now().UTC()}, JobID: j.result.JobID, Run: j.result.Run}
}

// watch follows the command until it has ended and its output is read. It never
// waits for the network. It is long because it is the one place where everything
// that can happen to a job meets.
func (j *job) watch(ctx context.Context) {
	heartbeat, second := time.NewTicker(schemas.Heartbeat), time.NewTicker(time.Second)
	defer heartbeat.Stop()
	defer second.Stop()
	defer signal.Stop(j.signals)
	done, exited, chunks := ctx.Done(), j.command.exited, j.command.chunks
	for exited != nil || chunks != nil {
		select {
		case c, open := <-chunks:
			if !open {
				chunks = nil
				break
			}
			j.take(j.output.write(c.stream, c.data, c.at))
		case <-exited:
			exited, j.kill = nil, nil
			j.command.wake()
			if j.result.Cancelled || j.stopping {
				_ = j.command.kill() // what is left of its group, usually nothing
			}
		case s := <-j.signals:
			j.forward(s)
		case <-done:
			done = nil
			j.cancel("courier run was told to end")
		case e := <-j.link.cancelled:
			if e.Run < j.result.Run && e.At.Before(j.result.Submitted) {
				break // of an earlier run
			}
			j.cancel(cmp.Or(e.Reason, "cancelled by request"))
		case <-j.kill:
			j.screen.say("the job did not end within %s: it is killed", j.o.Grace)
			_ = j.command.kill() // it may have ended by now
		case a := <-j.link.advice:
			j.progress.advise(a, time.Now())
			j.heed(a, time.Now())
			j.draw()
		case r := <-j.link.risks:
			j.screen.say("%s", oneLine(r.Message))
		case <-heartbeat.C:
			j.beat()
		case <-second.C:
			j.draw()
		}
		j.hint(time.Now())
		if exited == nil && chunks == nil && j.again() {
			exited, chunks = j.command.exited, j.command.chunks
		}
	}
	j.take(j.output.close(time.Now()))
	j.screen.close()
	j.command.close()
}

// beat says that the job lives.
func (j *job) beat() {
	j.beats++
	j.link.notify(&schemas.Alive{JobStamp: j.stamp(fmt.Sprintf("%s/%d/alive/%d", j.result.JobID, j.result.Run, j.beats))})
}

// forward passes a signal on to the job.
func (j *job) forward(s os.Signal) {
	if isResize(s) {
		j.command.resize(sizeOf(j.o.Stdout, j.o.Stderr, j.o.Stdin))
		return
	}
	if !j.command.running() && !j.stopping {
		return
	}
	if ends(s) {
		j.reason = fmt.Sprintf("interrupted by signal: %v", s)
		j.result.Cancelled = j.result.Cancelled || j.stopping // it is not started again
	}
	if err := j.command.signal(s); err != nil {
		j.log.Debug("signal is not forwarded", "signal", s, "error", err)
	}
}

// cancel asks the command to end. One that was asked already keeps its time.
func (j *job) cancel(reason string) {
	if j.result.Cancelled || !j.command.running() && !j.stopping {
		return
	}
	j.result.Cancelled, j.reason = true, reason
	j.screen.say("the job is asked to end: %s", oneLine(reason))
	if !j.stopping {
		j.terminate()
	}
}

// terminate asks the command to end, and sets when it is killed.
func (j *job) terminate() {
	_ = j.command.terminate() // it may have ended by now
	j.kill = time.After(j.o.Grace)
}
