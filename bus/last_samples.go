package bus

import (
	"context"

	"courier/schemas"
)

// LastSamples returns the newest stored sample of each of these nodes that has one, by node.
// It waits for the server until ctx ends, and then returns what it has read.
func (b *Bus) LastSamples(ctx context.Context, nodes ...string) map[string]Record {
	ctx, done := context.WithCancel(ctx)
	defer done()

	o := FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true, CaughtUp: done}
	for _, node := range nodes {
		o.Subjects = append(o.Subjects, schemas.NodeSubject(node, schemas.EventSample))
	}

	samples := map[string]Record{}
	// Follow ends with its context, and its handler returns no error.
	_ = b.Follow(ctx, o, func(r Record) error {
		if s, ok := r.Event.(*schemas.Sample); ok && ctx.Err() == nil {
			samples[s.Node] = r
		}
		return nil
	})
	return samples
}
