package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// prepareStream creates a stream, or changes it to its declared settings. The change is all or
// nothing; the error names the settings that differ.
func (b *Bus) prepareStream(ctx context.Context, s schemas.Stream) error {
	want := declaredConfig(s)
	stream, err := b.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		ctx, done := b.watchPermission(ctx, "$JS.API.STREAM.CREATE."+s.Name)
		_, err := b.js.CreateStream(ctx, want)
		if err = done(err); err != nil {
			return fmt.Errorf("create stream %s: %w", s.Name, unavailable(err))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect stream %s: %w", s.Name, unavailable(err))
	}
	have := stream.CachedInfo().Config
	differences := compare(have, want)
	if len(differences) == 0 {
		return nil
	}
	err = b.updateStream(ctx, merge(have, want))
	if isOverlap(err) {
		// A newer version of Courier moved a subject to another stream, which stores its
		// messages. This version keeps the subjects that the stream has.
		b.log.Warn("another stream stores subjects of this stream",
			"stream", s.Name, "declared", strings.Join(s.Subjects, " "), "error", err)
		want.Subjects = have.Subjects
		if differences = compare(have, want); len(differences) == 0 {
			return nil
		}
		err = b.updateStream(ctx, merge(have, want))
	}
	if err != nil {
		return fmt.Errorf("change stream %s (%s): %w",
			s.Name, strings.Join(differences, "; "), unavailable(err))
	}
	b.log.Info(
		"stream changed to its declared settings",
		"stream",
		s.Name,
		"settings",
		len(differences),
	)
	return nil
}

// updateStream changes the configuration of a stream.
func (b *Bus) updateStream(ctx context.Context, c streamConfig) error {
	ctx, done := b.watchPermission(ctx, "$JS.API.STREAM.UPDATE."+c.Name)
	_, err := b.js.UpdateStream(ctx, c)
	return done(err)
}

// isOverlap reports whether the server rejected subjects because another stream has them.
func isOverlap(err error) bool {
	const streamSubjectOverlap = 10065 // JSStreamSubjectOverlapErr of nats-server
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == streamSubjectOverlap
}

// declaredStreams are the streams of schemas, with at least Options.Replicas replicas.
func (b *Bus) declaredStreams() []schemas.Stream {
	all := schemas.Streams()
	for i := range all {
		all[i].Replicas = max(all[i].Replicas, b.minReplicas)
	}
	return all
}
