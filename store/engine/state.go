package engine

import (
	"context"
	"sync"
)

// readiness holds the state of the engine for callers of Ready: starting, ready, or ended.
type readiness struct {
	mu       sync.Mutex
	endpoint Connection
	ready    bool
	ended    bool
	err      error
	changed  chan struct{} // closed at the next change
}

func newReadiness() *readiness {
	return &readiness{changed: make(chan struct{})}
}

// setReady sets the endpoint of a started engine.
func (r *readiness) setReady(p Connection) {
	r.update(func() { r.endpoint, r.ready = p, true })
}

// setNotReady sets the state after a crash or stop of the engine.
func (r *readiness) setNotReady() {
	r.update(func() { r.ready = false })
}

// setEnded sets the state after the end of Run.
func (r *readiness) setEnded(err error) {
	if err == nil {
		err = ErrStopped
	}
	r.update(func() { r.ready, r.ended, r.err = false, true, err })
}

// update changes the state and wakes the callers of wait.
func (r *readiness) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait waits until the engine is ready and returns its endpoint.
func (r *readiness) wait(ctx context.Context) (Connection, error) {
	for {
		r.mu.Lock()
		endpoint, ready, ended, err, changed := r.endpoint, r.ready, r.ended, r.err, r.changed
		r.mu.Unlock()
		if ready {
			return endpoint, nil
		}
		if ended {
			return Connection{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Connection{}, ctx.Err()
		}
	}
}
