package bus

import (
	"context"
	"fmt"
)

// Bounds returns the first sequence that a stream keeps and the last that it was given.
// An empty stream has first = last + 1.
func (b *Bus) Bounds(ctx context.Context, stream string) (first, last uint64, err error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return 0, 0, fmt.Errorf("open stream %s: %w", stream, unavailable(err))
	}
	state := s.CachedInfo().State
	return max(state.FirstSeq, 1), state.LastSeq, nil
}
