package runner

import (
	"context"
	"log/slog"
	"time"

	"courier/spool"
)

// finishTimeout limits the time for publishing the remaining events after the command has ended.
const finishTimeout = 5 * time.Second

// Run submits a job, starts its command with the advised numbers, publishes its events, and
// returns when the command has ended. If NATS or the advisor is unreachable, the command runs with
// the first requested batch size or Options.BatchSize. When ctx ends, the command is stopped, and
// killed after Options.Grace.
//
// An error means that the command was not started: invalid options, a request that the advisor
// rejects (*schemas.Error), or a missing program. A command that fails is not an error, see
// Result.ExitCode.
//
// The advisor counts the runs of a job. If it is unreachable and the job may have run before, the
// number of the run is the number of seconds since 2020. A counted number cannot be that high, so
// events of two runs never have the same identity.
func Run(ctx context.Context, o Options, log *slog.Logger) (Result, error) {
	j, err := newJob(o, log)
	if err != nil {
		return Result{JobID: o.Request.JobID}, err
	}

	// Publishing continues for a while after ctx has ended.
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	j.conn = connect(publishing, j.o.Connect, j.o.SpoolDir, log)
	defer func() { stop(); j.conn.tasks.Wait() }()

	j.screen.detach()
	defer j.screen.finish()
	if err := j.submit(ctx); err != nil {
		return j.result, err
	}
	defer func() {
		j.removeCgroup()
		if err := j.directory.remove(); err != nil {
			log.Warn("directory of the run not removed", "error", err)
		}
	}()
	j.conn.subscribe(publishing, j.result.JobID)
	j.out = spool.NewOutbox(j.o.SpoolDir, j.o.Address, j.result.JobID, j.result.Run, log)
	go j.out.Run(publishing, j.conn.connected)

	err = j.start(ctx)
	if isRejection(err) { // the run is another runner's, and goes on
		j.out.Finish()
		return j.result, err
	}
	if err == nil {
		j.supervise(ctx)
	}
	j.publishEnd(err)
	j.summarize()

	deadline := time.AfterFunc(finishTimeout, stop)
	defer deadline.Stop()
	j.conn.finish(publishing)
	j.result.Spooled = j.out.Finish()
	j.sendLastHeartbeat()
	if n := j.result.Spooled; n > 0 && !j.o.OmitHints && j.o.Connect != nil {
		j.screen.message("%d events could not be published: the next courier run publishes them from %s",
			n, j.out.Path())
	}
	if lost := j.out.Lost(); lost > 0 {
		j.screen.message("%d events lost: NATS and the spool directory were unavailable", lost)
	}
	return j.result, err
}
