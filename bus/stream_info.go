package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamInfo describes the content of a stream. CreatedAt distinguishes streams of the same name.
type StreamInfo struct {
	At          time.Time // of the answer, by the server's clock
	CreatedAt   time.Time
	First, Last uint64 // sequences; First is Last+1 in an empty stream
	Messages    uint64
	Bytes       uint64
	FirstAt     time.Time     // when the oldest message was stored; zero for an empty stream
	MaxBytes    int64         // below 1: unlimited
	MaxAge      time.Duration // 0: unlimited
}

// stream opens a stream, whose cached information is current. The error matches schemas.ErrNotFound if
// the server does not have it.
func (b *Bus) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := b.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = &schemas.Error{Code: schemas.CodeNotFound, Message: "stream not found"}
	}
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, unavailable(err))
	}
	return s, nil
}

// StreamInfo returns what a stream holds now.
func (b *Bus) StreamInfo(ctx context.Context, stream string) (StreamInfo, error) {
	s, err := b.stream(ctx, stream)
	if err != nil {
		return StreamInfo{}, err
	}
	info := s.CachedInfo()
	return StreamInfo{
		At:        info.TimeStamp,
		CreatedAt: info.Created,
		First:     info.State.FirstSeq,
		Last:      info.State.LastSeq,
		Messages:  info.State.Msgs,
		Bytes:     info.State.Bytes,
		FirstAt:   info.State.FirstTime,
		MaxBytes:  info.Config.MaxBytes,
		MaxAge:    info.Config.MaxAge,
	}, nil
}

// Bounds returns the first and last sequence of a stream. In an empty stream, first is
// last+1.
func (b *Bus) Bounds(ctx context.Context, stream string) (first, last uint64, err error) {
	info, err := b.StreamInfo(ctx, stream)
	return max(info.First, 1), info.Last, err
}

// LastSequence returns the sequence of the last message of a stream. The error matches
// schemas.ErrNotFound if the server does not have the stream.
func (b *Bus) LastSequence(ctx context.Context, stream string) (uint64, error) {
	info, err := b.StreamInfo(ctx, stream)
	return info.Last, err
}

// ClusterID identifies the cluster by the creation time of the stream JOB.
func (b *Bus) ClusterID(ctx context.Context) (string, error) {
	info, err := b.StreamInfo(ctx, schemas.StreamJob)
	if err != nil {
		return "", fmt.Errorf("identify the cluster: %w", err)
	}
	return strconv.FormatInt(info.CreatedAt.UnixNano(), 36), nil
}

// WidenStream raises the limits of a stream to at least maxBytes and maxAge, and never lowers
// one. It returns the stream with its limits afterwards.
func (b *Bus) WidenStream(
	ctx context.Context, stream string, maxBytes int64, maxAge time.Duration,
) (StreamInfo, error) {
	s, err := b.stream(ctx, stream)
	if err != nil {
		return StreamInfo{}, err
	}

	config, changed := s.CachedInfo().Config, false
	if config.MaxBytes > 0 && config.MaxBytes < maxBytes {
		config.MaxBytes, changed = maxBytes, true
	}
	if config.MaxAge > 0 && config.MaxAge < maxAge {
		config.MaxAge, changed = maxAge, true
	}
	if changed {
		if err := b.updateStream(ctx, config); err != nil {
			return StreamInfo{}, fmt.Errorf("widen stream %s: %w", stream, unavailable(err))
		}
	}
	return b.StreamInfo(ctx, stream)
}
