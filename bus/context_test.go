package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"courier/bus"
	"courier/bus/server"
	"courier/schemas"
)

// A context of the nats CLI names the servers, and the JetStream domain of all requests.
func TestConnect_ByAContextOfTheNATSCommand(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(config, []byte(`
		jetstream {domain: hub}
		authorization {users: [
			{user: ada, password: secret}
			{user: bob, password: secret, permissions: {publish: "job.predict"}}
		]}
	`), 0o600))
	log := slog.New(slog.DiscardHandler)
	s, err := server.New(server.Options{DataDir: t.TempDir(), Config: config, Start: patience}, log)
	must(t, err)
	must(t, s.Start(within(t)))
	t.Cleanup(s.Stop)

	file := filepath.Join(t.TempDir(), "hub.json")
	data, err := json.Marshal(map[string]string{
		"url": s.URL(), "user": "ada", "password": "secret", "jetstream_domain": "hub",
	})
	must(t, err)
	must(t, os.WriteFile(file, data, 0o600))

	b, err := bus.Connect(within(t), bus.Options{Identity: bus.Identity{Context: file}}, log, nil)
	must(t, err)
	defer func() { must(t, b.Close(within(t))) }()
	must(t, b.Prepare(within(t)))
	publish(t, b, 1, 3)
	last, err := b.Last(within(t), schemas.StreamNode, schemas.NodeSubject("node-a", schemas.EventSample))
	if err != nil || len(last) != 1 || last[0].Sequence != 2 {
		t.Errorf("Last = %v, %v, want the second sample", last, err)
	}
	if b.Address() != s.URL() {
		t.Errorf("the address is %s, want that of the context", b.Address())
	}

	for name, i := range map[string]bus.Identity{
		"no such file":         {Context: filepath.Join(t.TempDir(), "none.json")},
		"no such context":      {Context: "no-such-context"},
		"no such credentials":  {CredsFile: filepath.Join(t.TempDir(), "none.creds")},
		"no seed":              {CredsFile: config},
		"seed and credentials": {CredsFile: file, SeedFile: file},
	} {
		_, err := bus.Connect(within(t), bus.Options{URL: s.URL(), Identity: i}, log, nil)
		if !errors.Is(err, bus.ErrIdentity) {
			t.Errorf("%s: Connect = %v, want ErrIdentity at once", name, err)
		}
	}
	// The errors of a user without a name say what is forbidden, and that the user is.
	bob, err := bus.Connect(within(t), bus.Options{
		URL: strings.Replace(s.URL(), "://", "://bob:secret@", 1), Identity: bus.Identity{Domain: "hub"},
	}, log, nil)
	must(t, err)
	defer func() { must(t, bob.Close(within(t))) }()
	if _, err := bob.StreamInfo(within(t), schemas.StreamJob); !errors.Is(err, schemas.ErrForbidden) {
		t.Errorf("StreamInfo = %v, want ErrForbidden", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	warned := slog.New(slog.NewTextHandler(writer(func([]byte) { cancel() }), nil)) // it retries until then
	_, err = bus.Connect(ctx, bus.Options{URL: s.URL(), Identity: bus.Identity{User: "bob"}}, warned, nil)
	if !errors.Is(err, bus.ErrAuthorization) {
		t.Errorf("Connect without a password = %v, want ErrAuthorization", err)
	}
}

type writer func([]byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}
