package engine

import (
	"context"
	"sync"
)

// state is what readers see of the engine: starting, ready, or ended.
type state struct {
	mu       sync.Mutex
	endpoint Endpoint
	ready    bool
	ended    bool
	err      error
	changed  chan struct{} // closed at the next change
}

func newState() *state {
	return &state{changed: make(chan struct{})}
}

// up says that the engine answers at p.
func (s *state) up(p Endpoint) { s.set(func() { s.endpoint, s.ready = p, true }) }

// down says that it does not answer now.
func (s *state) down() { s.set(func() { s.ready = false }) }

// end says that it will not answer again.
func (s *state) end(err error) {
	if err == nil {
		err = ErrStopped
	}
	s.set(func() { s.ready, s.ended, s.err = false, true, err })
}

// set changes the state and wakes who waits.
func (s *state) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait returns the endpoint as soon as the engine is ready.
func (s *state) wait(ctx context.Context) (Endpoint, error) {
	for {
		s.mu.Lock()
		endpoint, ready, ended, err, changed := s.endpoint, s.ready, s.ended, s.err, s.changed
		s.mu.Unlock()
		if ready {
			return endpoint, nil
		}
		if ended {
			return Endpoint{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Endpoint{}, ctx.Err()
		}
	}
}
