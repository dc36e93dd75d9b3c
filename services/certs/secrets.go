package certs

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"courier/schemas"
)

// scraper reads the metrics of the gateway and has a token for that.
const scraper = "prometheus"

// tableUsers are the users of deploy/clickhouse that have a password.
var tableUsers = []string{"courier", "trainer", "reader"}

// secret creates the file of a secret if it is absent, 260 random bits as letters and digits. It
// returns the SHA-256 of the secret in hex.
func (d *directory) secret(name string) (string, error) {
	if !d.has(name) {
		if err := d.add(name, []byte(rand.Text()+rand.Text()+"\n")); err != nil {
			return "", err
		}
	}
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(bytes.TrimSpace(text))
	return hex.EncodeToString(sum[:]), nil
}

// tokens creates a token for each person, the operator and prometheus, and the file of tokens for
// the gateway.
func (d *directory) tokens(persons []string) error {
	text := strings.Builder{}
	text.WriteString("# Tokens of the gateway: sha256, user, role (reader, submitter or admin).\n")
	for _, user := range append(slices.Clone(persons), schemas.Operator, scraper) {
		role := "submitter"
		switch user {
		case schemas.Operator:
			role = "admin"
		case scraper:
			role = "reader"
		}
		sum, err := d.secret(user + ".token")
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s %s %s\n", sum, user, role)
	}
	return d.put("tokens", []byte(text.String()))
}

// passwords creates a password for each user of ClickHouse, and server settings with their hashes,
// which replace the passwords from the environment.
func (d *directory) passwords() error {
	text := strings.Builder{}
	text.WriteString("<!-- Passwords in the place of those in users.xml and trainer.xml, which" +
		" are read before. -->\n<clickhouse>\n  <users>\n")
	for _, user := range tableUsers {
		sum, err := d.secret(user + ".password")
		if err != nil {
			return err
		}
		fmt.Fprintf(&text,
			"    <%s><password remove=\"1\"/><password_sha256_hex>%s</password_sha256_hex></%s>\n",
			user, sum, user)
	}
	text.WriteString("  </users>\n</clickhouse>\n")
	return d.put("passwords.xml", []byte(text.String()))
}

// containerFiles are the files of each container of docker-compose.secure.yml. The three NATS
// containers have the same.
var containerFiles = map[string][]string{
	"nats":       {"nats.crt", "nats.key", "routes.crt", "routes.key", "users.conf"},
	"clickhouse": {"clickhouse.crt", "clickhouse.key", "passwords.xml"},
	"advisor":    {"advisor.nk"},
	"store":      {"store.nk", "courier.password"},
	"trainer":    {"trainer.nk", "trainer.password"},
	"collector":  {"collector.nk"},
	"gateway":    {"gateway.nk", "gateway.crt", "gateway.key", "tokens"},
	worker:       {"worker.nk"},
	scraper:      {"prometheus.token"},
	"grafana":    {"reader.password"},
}

// containers copies the files of each container into its own folder. Containers run as users that
// do not exist on this machine, so the copies are world-readable. The folder above them can only be
// entered by its owner, and a container only sees its own folder.
func (d *directory) containers() error {
	above := d.file("containers")
	if err := errors.Join(os.MkdirAll(above, 0o700), os.Chmod(above, 0o700)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(containerFiles)) {
		folder := filepath.Join("containers", name)
		// Chmod ignores the umask.
		path := d.file(folder)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, 0o755)); err != nil {
			return err
		}
		for _, file := range append([]string{"ca.crt"}, containerFiles[name]...) {
			if err := d.copy(file, filepath.Join(folder, file)); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy replaces a file atomically by a copy of another.
func (d *directory) copy(from, to string) error {
	data, err := os.ReadFile(d.file(from))
	if errors.Is(err, fs.ErrNotExist) && from == "users.conf" {
		return fmt.Errorf("missing file %s: create it with --rights", from)
	}
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(d.file(to)); err == nil && bytes.Equal(old, data) {
		return nil
	}
	whole := d.file(to) + ".tmp"
	defer func() { _ = os.Remove(whole) }() // It only exists after a failure.
	if err := errors.Join(os.WriteFile(whole, data, 0o600), os.Chmod(whole, 0o644)); err != nil {
		return err
	}
	if err := os.Rename(whole, d.file(to)); err != nil {
		return err
	}
	d.report("copied   %s", d.file(to))
	return nil
}
