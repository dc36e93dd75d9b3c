package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"courier/bus"
)

// ErrOtherLog reports that the tables hold later sequences than the log ever assigned: they
// belong to a different log, or the log was created again.
var ErrOtherLog = errors.New("the tables hold more than the log ever had")

// VerifyOptions configures a verification.
type VerifyOptions struct {
	// Since limits the verification to events of this last period. Default: all events that
	// the tables keep.
	Since time.Duration

	// Progress, if set, is called at intervals from one goroutine.
	Progress func(action string, done, total uint64)

	windowRows uint64 // rows that are compared at once; default defaultWindowRows
}

// defaultWindowRows bounds the memory of Verify, here and in ClickHouse: an event takes about
// 200 bytes.
const defaultWindowRows = 250_000

// Verifier compares the tables with the log.
type Verifier struct {
	bus      *bus.Bus
	database *Database
	options  VerifyOptions
	log      *slog.Logger
}

// NewVerifier returns a verifier of a database that a store fills from the log of b.
func NewVerifier(b *bus.Bus, d *Database, log *slog.Logger, o VerifyOptions) *Verifier {
	if o.windowRows == 0 {
		o.windowRows = defaultWindowRows
	}
	if o.Progress == nil {
		o.Progress = func(string, uint64, uint64) {}
	}
	return &Verifier{bus: b, database: d, options: o, log: log}
}

// recordedPosition returns the recorded position of a stream, and ErrOtherLog if the stream
// ends before it.
func recordedPosition(ctx context.Context, b *bus.Bus, d *Database, stream string) (uint64, error) {
	position, err := d.Position(ctx, stream)
	if err != nil {
		return 0, err
	}
	last, err := b.LastSequence(ctx, stream)
	if err != nil {
		return 0, err
	}
	if position > last {
		return 0, fmt.Errorf("%w: the tables hold it up to %d, but it ends at %d",
			ErrOtherLog, position, last)
	}
	return position, nil
}
