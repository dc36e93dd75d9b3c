package store_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
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
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // ends the accept loop
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go join(near, server)
		}
	}()
	return l.Addr().String(), caFile
}

// join copies data in both directions until one side closes.
func join(near net.Conn, server string) {
	defer near.Close()
	far, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // a broken connection ends both directions
			ended <- struct{}{}
		}()
	}
	<-ended
}

// The connection uses TLS with a private authority, and a password from a file.
func TestOpen_ByTLSWithAPasswordFromAFile(t *testing.T) {
	u, err := url.Parse(storetest.Empty(t, "clickhouse"))
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
		{store.Options{URL: "http://u@h:8123", CAFile: empty}, ""},
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
