package store_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"courier/store"
	"courier/store/storetest"
)

func TestOpen_RejectsInvalidAddresses(t *testing.T) {
	tests := []struct{ url, want string }{
		{"", "(no scheme)"},
		{"127.0.0.1:9000", "(no scheme)"},
		{"nats://u:secret@127.0.0.1:4222", "nats://127.0.0.1:4222"},
		{"clickhouse://", "clickhouse://"},
		{"clickhouse://u:secret@host:port/courier", "clickhouse://host:port/courier"},
		{"clickhouse://u:se/secret@host:9000/courier", "clickhouse://host:9000/courier"},
		{"clickhouse://u:%zzsecret@host:9000/courier?x=secret", "clickhouse://host:9000/courier"},
		{"clickhouse://host:9000/a;secret", "database name"},
		{"clickhouse://host:9000/courier?dial_timeout=secret", "clickhouse://host:9000/courier"},
		{"https://u:secret@host:8443/courier?secure=false", "https://host:8443/courier"},
	}
	for _, test := range tests {
		t.Run(test.url, func(t *testing.T) {
			_, err := store.Open(t.Context(), store.Options{URL: test.url}, slog.New(slog.DiscardHandler), nil)
			if !errors.Is(err, store.ErrAddress) {
				t.Fatalf("Open(%s) = %v, want ErrAddress", test.url, err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open(%s) = %q, want %q", test.url, err, test.want)
			}
			if strings.Contains(strings.ReplaceAll(err.Error(), "a;secret", ""), "secret") {
				t.Errorf("Open(%s) = %q, which contains the password", test.url, err)
			}
		})
	}
}

func TestOpen_AcceptsEachScheme(t *testing.T) {
	for _, scheme := range []string{"clickhouse", "tcp", "http", "https"} {
		d, err := store.Open(t.Context(),
			store.Options{URL: scheme + "://u:se%2Fcret@host:9000?max_threads=2"},
			slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Errorf("Open(%s://…) = %v", scheme, err)
			continue
		}
		if got, want := d.Address(), scheme+"://host:9000"; got != want {
			t.Errorf("Address of %s://… = %s, want %s", scheme, got, want)
		}
		must(t, d.Close())
	}
}

// attempts is a log that calls enough after the second attempt to connect. One goroutine writes
// to it.
type attempts struct {
	bytes.Buffer
	count  int
	enough func()
}

func (a *attempts) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("clickhouse is not available yet")) {
		if a.count++; a.count == 2 {
			a.enough()
		}
	}
	return a.Buffer.Write(line)
}

// Migrate starts before the server listens.
func TestMigrate_WaitsForTheDatabase(t *testing.T) {
	for _, scheme := range []string{"clickhouse", "http"} {
		t.Run(scheme, func(t *testing.T) {
			const host = "127.0.0.1:1"
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			log := &attempts{enough: cancel}
			o := store.Options{URL: scheme + "://u:secret@" + host + "/courier"}
			d, err := store.Open(ctx, o, slog.New(slog.NewTextHandler(log, nil)), nil)
			must(t, err)
			defer d.Close()
			err = d.Migrate(ctx)
			if err == nil || !strings.Contains(err.Error(), scheme+"://"+host+"/courier") {
				t.Errorf("Migrate = %v, want an error that names the address", err)
			}
			if log.count < 2 {
				t.Errorf("the log has %d attempts, want at least 2:\n%s", log.count, log.String())
			}
			if strings.Contains(log.String()+err.Error(), "secret") {
				t.Errorf("the log or the error contains the password:\n%s\n%v", log.String(), err)
			}
		})
	}
}

func TestMigrate_RejectsAWrongPassword(t *testing.T) {
	for _, protocol := range storetest.Protocols(t) {
		t.Run(protocol, func(t *testing.T) {
			u, err := url.Parse(storetest.Address(t, protocol))
			must(t, err)
			u.User = url.UserPassword(u.User.Username(), "not-the-secret")
			err = storetest.Open(t, u.String()).Migrate(t.Context())
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), u.Host) ||
				strings.Contains(err.Error(), "not-the-secret") {
				t.Errorf("Migrate = %v, want ErrRefused that names %s and no password", err, u.Host)
			}
		})
	}
}

func TestQuery_ErrorsNameTheDatabase(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, func(t *testing.T, d *store.Database) {
		var rows []struct{}
		err := d.Query(t.Context(), &rows, "SELECT nothing FROM nowhere")
		if err == nil || !strings.Contains(err.Error(), d.Address()) || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("Query = %v, want an error that names %s and the table", err, d.Address())
		}
	})
}
