package advisor

import (
	"context"
	"io"

	"courier/bus"
	"courier/schemas"
)

// eventBus is what an advisor uses of *bus.Bus, whose methods describe it. The model-based test has an
// event log in virtual time, because thousands of schedules with a server take too long.
type eventBus interface {
	snapshotStore
	Connected() bool
	Publish(ctx context.Context, e schemas.Event) (uint64, error)
	PublishOnce(ctx context.Context, e schemas.Event) (sequence uint64, first bool, err error)
	Claim(ctx context.Context, e *schemas.Started) (uint64, error)
	Follow(ctx context.Context, o bus.FollowOptions, handle func(bus.Record) error) error
	Last(ctx context.Context, stream, filter string) ([]bus.Record, error)
	LastSequence(ctx context.Context, stream string) (uint64, error)
	Ticket(ctx context.Context) (schemas.Ticket, uint64, error)
	TakeTicket(ctx context.Context, t schemas.Ticket, revision uint64) error
	ListenPersons(ctx context.Context, subjects []string, handle func(person string, e schemas.Event)) error
	Serve(ctx context.Context, s bus.Service) error
	WatchChampions(ctx context.Context, handle func(c schemas.Champion, revision uint64)) error
	Artifact(ctx context.Context, digest string) ([]byte, error)
}

// snapshotStore has the limits of the event log, and the snapshots of states.
type snapshotStore interface {
	StreamInfo(ctx context.Context, stream string) (bus.StreamInfo, error)
	Snapshots(ctx context.Context, kind string, version int) ([]bus.Snapshot, error)
	CheckSnapshot(ctx context.Context, s bus.Snapshot, current bus.StreamInfo) error
	SaveSnapshot(ctx context.Context, s bus.Snapshot, encode func(io.Writer) error) error
	LoadSnapshot(ctx context.Context, s bus.Snapshot, decode func(io.Reader) error) error
}
