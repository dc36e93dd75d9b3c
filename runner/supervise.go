package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"courier/runner/instrument"
	"courier/runner/output"
	"courier/schemas"
)

// supervise handles everything that happens to the job until its process has ended and the output
// is read. It never waits for the network.
func (j *job) supervise(ctx context.Context) {
	defer signal.Stop(j.signals)
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx)) // also while the job is stopped
	defer stopBeating()
	in := j.openInputs(ctx)
	defer in.close()
	j.sendHeartbeat(beating)
	for isEnding := false; in.areOpen(); { // isEnding: the channels were stopped
		j.handleNext(beating, in)
		j.hint(time.Now())
		if in.exited != nil || in.chunks != nil || isEnding {
			continue
		}
		if j.restart() {
			in.exited, in.chunks = j.process.exited, j.process.chunks
		} else {
			isEnding = true
			j.stopChannels()
		}
	}
	j.awaitResize()
	j.closeOutput()
	j.hintAtEnd()
	j.screen.draw("")
	j.process.close()
}

// inputs has the channels that supervise reads, except the fields of the job. A channel that has ended is
// nil.
type inputs struct {
	done     <-chan struct{}    // of the context
	exited   <-chan struct{}    // of the process
	chunks   <-chan outputChunk // of its output
	reported <-chan outputChunk // of the side channel
	measured <-chan outputChunk // of the instrumentation

	heartbeat, second, poll *time.Ticker
}

func (j *job) openInputs(ctx context.Context) *inputs {
	return &inputs{
		done:      ctx.Done(),
		exited:    j.process.exited,
		chunks:    j.process.chunks,
		reported:  j.channel.reported(),
		measured:  j.instrumentChannel.reported(),
		heartbeat: time.NewTicker(schemas.Heartbeat),
		second:    time.NewTicker(time.Second),
		poll:      time.NewTicker(pollInterval),
	}
}

// areOpen reports whether the process runs, or something that it has written is left to read.
func (in *inputs) areOpen() bool {
	return in.exited != nil || in.chunks != nil || in.reported != nil || in.measured != nil
}

func (in *inputs) close() {
	in.heartbeat.Stop()
	in.second.Stop()
	in.poll.Stop()
}

// handleNext waits for one input and handles it.
func (j *job) handleNext(beating context.Context, in *inputs) {
	select {
	case c, isOpen := <-in.chunks:
		receive(&in.chunks, c, isOpen, j.readOutput)
	case c, isOpen := <-in.reported:
		receive(&in.reported, c, isOpen, j.readChannel)
	case c, isOpen := <-in.measured:
		receive(&in.measured, c, isOpen, j.readInside)
	case <-in.exited:
		in.exited = nil
		j.hasExited()
	case s := <-j.signals:
		j.forwardSignal(s)
	case <-in.done:
		in.done = nil
		j.cancel("courier run was stopped")
	case <-j.pinTimer:
		j.pin()
	case o := <-j.resized:
		j.endResize(o)
	case e := <-j.conn.events:
		j.takeEvent(e)
	case <-j.killTimer:
		j.screen.message("the job did not stop within %s: killing it", j.o.Grace)
		_ = j.process.kill() // it may have ended already
	case <-in.poll.C:
		if j.metrics != nil && j.channelOutput == nil {
			j.addRead(j.metrics.poll(false))
		}
	case <-in.heartbeat.C:
		j.sendHeartbeat(beating)
	case at := <-j.conn.beaten:
		j.heartbeatArrived(at)
	case <-in.second.C:
		j.checkContact(time.Now())
		j.addMeasured(false)
		j.drawProgress()
	}
}

// receive passes on what a channel has delivered, or forgets the channel at its end.
func receive(from *<-chan outputChunk, c outputChunk, isOpen bool, take func(outputChunk)) {
	if isOpen {
		take(c)
	} else {
		*from = nil
	}
}

// hasExited takes the end of the process. Its output may follow.
func (j *job) hasExited() {
	j.killTimer = nil
	j.process.wakeReaders()
	if j.result.Cancelled || j.isRestarting {
		_ = j.process.kill() // its children, of which usually none are left
	}
}

// takeEvent takes an event of the job that another program has published. A cancellation of an earlier
// run does not count.
func (j *job) takeEvent(e schemas.Event) {
	switch e := e.(type) {
	case *schemas.Ended:
		if e.Run >= j.result.Run || !e.At.Before(j.result.Submitted) {
			j.cancel(cmp.Or(e.Reason, "cancelled by request"))
		}
	case *schemas.Risk:
		j.screen.message("%s", schemas.OneLine(e.Message))
	case *schemas.Advice:
		j.progress.predict(e, time.Now())
		j.applyAdvice(e, time.Now())
		j.drawProgress()
	}
}

// readOutput takes output of the job, whose epochs count unless they are read elsewhere.
func (j *job) readOutput(c outputChunk) {
	if reports := j.output.Write(c.stream, c.data, c.at); !j.reportsElsewhere() {
		j.addRead(reports)
	}
}

// readInside takes a line of the instrumentation.
func (j *job) readInside(c outputChunk) {
	j.merge.Line(c.stream, c.data, c.at)
	j.output.SetMeasured(j.merge.Known())
	j.addMeasured(false)
}

// reportsElsewhere reports whether epochs are not read from the output.
func (j *job) reportsElsewhere() bool { return j.channelOutput != nil || j.metrics != nil }

// addRead takes epochs that were read from the output or from a metrics file.
func (j *job) addRead(reports []output.EpochReport) {
	j.addReports(j.merge.Text(reports))
	j.addMeasured(false)
}

// addMeasured takes the epochs that the instrumentation has measured, unless a client reports them.
func (j *job) addMeasured(isEnd bool) {
	if j.channelOutput != nil {
		return
	}
	counts := j.metrics != nil || j.output.Follows()
	j.addReports(j.merge.Take(time.Now(), counts, isEnd))
	for _, note := range j.merge.Notes() {
		j.screen.message("%s", schemas.OneLine(note))
	}
}

// closeOutput takes the epochs that the end of the output completes.
func (j *job) closeOutput() {
	reports := j.output.Close(time.Now(), j.process.state.Success())
	switch {
	case j.metrics != nil && j.channelOutput == nil:
		j.addRead(j.metrics.poll(!j.isRestarting))
	case !j.reportsElsewhere():
		j.addRead(reports)
	}
	j.addMeasured(true)
	j.addHeld(j.epochs.rest())
}

// readChannel takes a line of the side channel, or the start of a connection.
func (j *job) readChannel(c outputChunk) {
	if j.channelOutput == nil {
		j.channelOutput = output.NewChannel()
	}
	j.addReports(j.channelOutput.Write(c.data, c.at))
}

// openChannels opens the side channel and that of the instrumentation.
func (j *job) openChannels() {
	if j.directory == nil {
		return
	}
	var err error
	if j.channel, err = openSideChannel(filepath.Join(j.directory.path, "epochs")); err != nil {
		j.log.Debug("no side channel", "error", err)
	}
	if j.o.NoInstrument {
		return
	}
	if j.pythonPath, err = instrument.Write(j.directory.path); err == nil {
		j.instrumentChannel, err = openSideChannel(filepath.Join(j.directory.path, "instrument"))
	}
	if err != nil {
		j.log.Debug("no instrumentation", "error", err)
	}
}

func (j *job) stopChannels() {
	j.channel.stop()
	j.instrumentChannel.stop()
}

// forwardSignal forwards a signal to the job.
func (j *job) forwardSignal(s os.Signal) {
	if isResize(s) {
		j.process.resize(j.terminalSize())
		return
	}
	if isUnread(s) {
		j.cancel("nobody reads its output any more")
		return
	}
	if !j.process.isRunning() && !j.isRestarting {
		return
	}
	if isTermination(s) {
		j.stopReason = fmt.Sprintf("interrupted by signal: %v", s)
		j.result.Cancelled = j.result.Cancelled || j.isRestarting // it is not restarted
	}
	if err := j.process.signal(s); err != nil {
		j.log.Debug("signal not forwarded", "signal", s, "error", err)
	}
}

// cancel stops the job. A job that is already stopping keeps its grace period.
func (j *job) cancel(reason string) {
	if j.result.Cancelled || !j.process.isRunning() && !j.isRestarting {
		return
	}
	j.result.Cancelled, j.stopReason = true, reason
	j.screen.message("stopping the job: %s", schemas.OneLine(reason))
	if !j.isRestarting {
		j.stop()
	}
}

// stop asks the process to end, and sets the time at which it is killed.
func (j *job) stop() {
	_ = j.process.terminate() // it may have ended already
	j.killTimer = time.After(j.o.Grace)
}
