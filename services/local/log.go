package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"courier/bus"
	"courier/bus/server"
	"courier/services"
)

// RunningError reports that the Instance of a data directory runs, and where its log is.
type RunningError struct{ NATSURL string }

func (e *RunningError) Error() string { return "courier all runs; its log is at " + e.NATSURL }

// OpenLog opens the log of a stopped Instance with a server of its own, until stop is called. If the
// Instance runs, the error is a *RunningError.
func OpenLog(ctx context.Context, dir string, log *slog.Logger) (b *bus.Bus, stop func(), err error) {
	files := filepath.Join(dir, "nats")
	if _, err := os.Stat(files); err != nil {
		return nil, nil, fmt.Errorf("%s holds no log: %w", dir, err)
	}
	release, err := services.LockDir(dir)
	if err != nil {
		e, missing := ReadEndpoints(dir)
		if missing != nil {
			return nil, nil, err
		}
		return nil, nil, &RunningError{NATSURL: e.NATSURL}
	}
	s, err := server.New(server.Options{DataDir: files, Port: -1}, log)
	if err == nil {
		err = s.Start(ctx)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	b, err = bus.Connect(ctx, bus.Options{InProcess: s, Name: "courier-log"}, log, nil)
	if err != nil {
		s.Stop()
		release()
		return nil, nil, err
	}
	return b, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = b.Close(ctx) // only reads
		s.Stop()
		release()
	}, nil
}
