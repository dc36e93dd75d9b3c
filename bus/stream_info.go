package bus

import (
	"context"
	"fmt"
	"time"
)

// StreamPlace is what tells streams of one name apart, and what a stream holds.
type StreamPlace struct {
	CreatedAt   time.Time
	First, Last uint64 // sequences; First is Last+1 of an empty stream
	Messages    uint64
	Bytes       uint64
	FirstAt     time.Time     // when the oldest message was stored; zero of an empty stream
	MaxBytes    int64         // below 1: unlimited
	MaxAge      time.Duration // 0: unlimited
}

// Place returns what a stream holds now.
func (b *Bus) Place(ctx context.Context, stream string) (StreamPlace, error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return StreamPlace{}, fmt.Errorf("open stream %s: %w", stream, unavailable(err))
	}
	info := s.CachedInfo()
	return StreamPlace{
		CreatedAt: info.Created, First: info.State.FirstSeq, Last: info.State.LastSeq,
		Messages: info.State.Msgs, Bytes: info.State.Bytes, FirstAt: info.State.FirstTime,
		MaxBytes: info.Config.MaxBytes, MaxAge: info.Config.MaxAge,
	}, nil
}

// WidenStream raises the limits of a stream to at least maxBytes and maxAge; it never
// lowers one. It returns the limits that hold afterwards.
func (b *Bus) WidenStream(
	ctx context.Context, stream string, maxBytes int64, maxAge time.Duration,
) (StreamPlace, error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return StreamPlace{}, fmt.Errorf("open stream %s: %w", stream, unavailable(err))
	}
	config := s.CachedInfo().Config
	narrow := false
	if config.MaxBytes > 0 && config.MaxBytes < maxBytes {
		config.MaxBytes, narrow = maxBytes, true
	}
	if config.MaxAge > 0 && config.MaxAge < maxAge {
		config.MaxAge, narrow = maxAge, true
	}
	if narrow {
		asking, done := b.permitted(ctx, "$JS.API.STREAM.UPDATE."+stream)
		_, err := b.js.UpdateStream(asking, config)
		if err = done(err); err != nil {
			return StreamPlace{}, fmt.Errorf("widen stream %s: %w", stream, unavailable(err))
		}
	}
	return b.Place(ctx, stream)
}
// An empty stream has first = last + 1.
func (b *Bus) Bounds(ctx context.Context, stream string) (first, last uint64, err error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return 0, 0, fmt.Errorf("open stream %s: %w", stream, unavailable(err))
	}
	state := s.CachedInfo().State
	return max(state.FirstSeq, 1), state.LastSeq, nil
}
