package bus_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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
		authorization {users: [{user: ada, password: secret}]}
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
		"seed and credentials": {CredsFile: file, SeedFile: file},
	} {
		_, err := bus.Connect(within(t), bus.Options{URL: s.URL(), Identity: i}, log, nil)
		if !errors.Is(err, bus.ErrIdentity) {
			t.Errorf("%s: Connect = %v, want ErrIdentity at once", name, err)
		}
	}
}
