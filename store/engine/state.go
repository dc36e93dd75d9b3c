package engine

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
)

// Connection describes how to connect to the engine. The URLs and the log value contain no
// passwords.
type Connection struct {
	HTTPURL   string // such as http://127.0.0.1:8123
	NativeURL string // such as clickhouse://127.0.0.1:9000

	// User may read and write every database.
	User, Password string

	// ReaderUser may read Database.
	ReaderUser, ReaderPassword string

	Database string // it exists
	Version  string // of the engine, such as 26.7.2.1
	PID      int    // of the child; a restart changes it
}

// StoreURL returns the URL of Database with the credentials of User.
func (p Connection) StoreURL() string {
	u, err := url.Parse(p.NativeURL)
	if err != nil {
		return p.NativeURL // store.Open reports the error.
	}
	u.User, u.Path = url.UserPassword(p.User, p.Password), "/"+p.Database
	return u.String()
}

// LogValue omits the passwords.
func (p Connection) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("http_url", p.HTTPURL),
		slog.String("native_url", p.NativeURL),
		slog.String("user", p.User),
		slog.String("database", p.Database),
		slog.String("version", p.Version),
		slog.Int("pid", p.PID),
	)
}

// readiness holds the state of the engine for callers of Ready: starting, ready, or ended.
type readiness struct {
	mu       sync.Mutex
	endpoint Connection
	ready    bool
	ended    bool
	err      error
	changed  chan struct{} // closed at the next change
}

func (r *readiness) setReady(p Connection) {
	r.update(func() { r.endpoint, r.ready = p, true })
}

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
