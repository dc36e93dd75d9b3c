package store_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		{"https://u:secret@host:8443/courier", "https://host:8443/courier"},
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

func TestOpen_HidesThePassword(t *testing.T) {
	d, err := store.Open(t.Context(),
		store.Options{URL: "clickhouse://u:se%2Fcret@host:9000?max_threads=2"},
		slog.New(slog.DiscardHandler), nil)
	must(t, err)
	defer d.Close()
	if got, want := d.Address(), "clickhouse://host:9000"; got != want {
		t.Errorf("Address() = %s, want %s", got, want)
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
	const host = "127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	log := &attempts{enough: cancel}
	o := store.Options{URL: "clickhouse://u:secret@" + host + "/courier"}
	d, err := store.Open(ctx, o, slog.New(slog.NewTextHandler(log, nil)), nil)
	must(t, err)
	defer d.Close()
	err = d.Migrate(ctx)
	if err == nil || !strings.Contains(err.Error(), "clickhouse://"+host+"/courier") {
		t.Errorf("Migrate = %v, want an error that names the address", err)
	}
	if log.count < 2 {
		t.Errorf("the log has %d attempts, want at least 2:\n%s", log.count, log.String())
	}
	if strings.Contains(log.String()+err.Error(), "secret") {
		t.Errorf("the log or the error contains the password:\n%s\n%v", log.String(), err)
	}
}

func TestMigrate_RejectsAWrongPassword(t *testing.T) {
	u, err := url.Parse(storetest.Address(t))
	must(t, err)
	u.User = url.UserPassword(u.User.Username(), "not-the-secret")
	err = storetest.Open(t, u.String()).Migrate(t.Context())
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), u.Host) ||
		strings.Contains(err.Error(), "not-the-secret") {
		t.Errorf("Migrate = %v, want ErrRefused that names %s and no password", err, u.Host)
	}
}

func TestQuery_ErrorsNameTheDatabase(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	var rows []struct{}
	err := d.Query(t.Context(), &rows, "SELECT nothing FROM nowhere")
	if err == nil || !strings.Contains(err.Error(), d.Address()) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("Query = %v, want an error that names %s and the table", err, d.Address())
	}
}

// newTLSProxy starts a TLS proxy of a server with a self-signed certificate.
func newTLSProxy(t *testing.T, server string) (address, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	caFile = filepath.Join(t.TempDir(), "ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: der}
	must(t, os.WriteFile(caFile, pem.EncodeToMemory(block), 0o600))
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return newRelay(t, tls.NewListener(listen(t), config), server, nil).Addr().String(), caFile
}

// The connection uses TLS with a private authority, and a password from a file.
func TestOpen_ByTLSWithAPasswordFromAFile(t *testing.T) {
	u, err := url.Parse(storetest.Empty(t))
	if err != nil {
		t.Fatal("the address of the server is invalid")
	}
	password, _ := u.User.Password()
	if password == "" {
		t.Skip("the ClickHouse of the tests has no password")
	}
	address, ca := newTLSProxy(t, u.Host)
	_, otherCA := newTLSProxy(t, u.Host)
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	u.User, u.Host = url.User(u.User.Username()), address
	for _, c := range []struct {
		what string
		o    store.Options
		want string // of the error; "": none
	}{
		{"right", store.Options{URL: u.String(), CAFile: ca, PasswordFile: file}, ""},
		{"without TLS", store.Options{URL: u.String(), PasswordFile: file}, "EOF"},
		{
			"with the system's authorities",
			store.Options{URL: u.String() + "?secure=true", PasswordFile: file},
			"unknown authority",
		},
		{"with another authority", store.Options{URL: u.String(), CAFile: otherCA, PasswordFile: file}, "x509"},
		{"without the password", store.Options{URL: u.String(), CAFile: ca}, "Authentication failed"},
	} {
		d, err := store.Open(t.Context(), c.o, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err = store.Values[uint8](ctx, d, "SELECT 1")
		cancel()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error contains the password", c.what)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpen_ErrorsNameTheFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	must(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for _, c := range []struct {
		o    store.Options
		want string
	}{
		{store.Options{URL: "clickhouse://u@h:9440", CAFile: "/nowhere/ca.crt"}, "/nowhere/ca.crt"},
		{store.Options{URL: "clickhouse://u@h:9440", CAFile: empty}, "holds no certificate"},
		{store.Options{URL: "clickhouse://u@h:9440", PasswordFile: "/nowhere/password"}, "/nowhere/password"},
		{store.Options{URL: "clickhouse://u@h:9440", PasswordFile: empty}, "is empty"},
		{store.Options{URL: "clickhouse://u:hunter2@h:9440", PasswordFile: empty}, "given twice"},
	} {
		_, err := store.Open(t.Context(), c.o, slog.New(slog.DiscardHandler), nil)
		if !errors.Is(err, store.ErrAddress) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%s) = %v, want ErrAddress with %q", c.o.URL, err, c.want)
		}
	}
}
