// Package certs creates the credentials of a secured cluster: a certificate authority,
// certificates, nkey seeds of NATS users with their permissions, tokens of the gateway and
// passwords of ClickHouse. Create never replaces an existing file, so that it can be called again
// to add a person. Only the owner can read the files. The command courier certs is its only caller,
// and tests that command with real servers.
package certs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/nats-io/nkeys"
)

// Options select the credentials to create. The tags are those of the flags of courier certs.
type Options struct {
	Out        string   `help:"Directory for the files; created if absent." required:"" type:"path"`
	Persons    []string `name:"person" help:"Person who submits jobs, 1 to 64 of a-z, 0-9, _ and -; may be repeated. The person worker always exists." sep:","`
	Hosts      []string `name:"host" help:"Additional names and addresses of the servers, besides nats, nats-1 to nats-3, nats1 to nats3, clickhouse, gateway and localhost." sep:","`
	Rights     string   `help:"File with the permissions of NATS users, deploy/nats/users.conf. Writes a copy with the nkeys and a block for each person." type:"existingfile"`
	Containers bool     `help:"Fill the folder containers with the files of each container of docker-compose.secure.yml. Needs --rights, now or in an earlier run."`
	Days       int      `help:"Validity of certificates in days." default:"825"`
}

// natsUsers are the users of deploy/nats/users.conf apart from persons; their nkeys are variables
// in that file.
var natsUsers = []string{
	"advisor",
	"store",
	"trainer",
	"collector",
	"gateway",
	schemas.Operator,
	"system",
}

// worker is the person for whom the containers of the local cluster run jobs. The block of worker
// in the permissions is the template for every other person.
const worker = "worker"

// Create creates the absent credentials. It returns a line for each file.
func Create(o Options) ([]string, error) {
	taken := append(slices.Clone(natsUsers), scraper)
	for _, p := range o.Persons {
		if !schemas.ValidToken(p) || slices.Contains(taken, p) {
			return nil, fmt.Errorf("--person %q: want a name of 1 to 64 of a-z, 0-9, _ and -, and"+
				" none of %s", p, strings.Join(taken, ", "))
		}
	}
	if o.Days < 1 {
		return nil, fmt.Errorf("--days %d: want 1 or more", o.Days)
	}
	if err := os.MkdirAll(o.Out, 0o700); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}

	d := &directory{path: o.Out, until: time.Now().AddDate(0, 0, o.Days)}
	if err := d.certificates(o.Hosts); err != nil {
		return nil, err
	}
	persons, err := d.persons(o.Persons)
	if err != nil {
		return nil, err
	}
	if err := d.users(persons, o.Rights); err != nil {
		return nil, err
	}
	if err := errors.Join(d.tokens(persons), d.passwords()); err != nil {
		return nil, err
	}
	if o.Containers {
		if err := d.containers(); err != nil {
			return nil, fmt.Errorf("--containers: %w", err)
		}
	}
	return d.lines, nil
}

type directory struct {
	path  string
	until time.Time // end of the validity of certificates
	lines []string  // of the report
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

func (d *directory) report(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// has reports whether a file exists, which is then kept.
func (d *directory) has(name string) bool {
	_, err := os.Lstat(d.file(name))
	if err == nil {
		d.report("kept     %s", d.file(name))
	}
	return err == nil
}

// add creates a file that only its owner can read.
func (d *directory) add(name string, data []byte) error {
	f, err := os.OpenFile(d.file(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	d.report("created  %s", d.file(name))
	return nil
}

// put adds a file that is derived from other files. If an existing file differs, the new version
// gets the suffix .new.
func (d *directory) put(name string, data []byte) error {
	old, err := os.ReadFile(d.file(name))
	if errors.Is(err, os.ErrNotExist) {
		return d.add(name, data)
	}
	if err != nil {
		return err
	}
	if bytes.Equal(old, data) {
		d.report("kept     %s", d.file(name))
		return nil
	}
	if err := os.WriteFile(d.file(name+".new"), data, 0o600); err != nil {
		return err
	}
	d.report("differs  %s: the new version is in %s.new", d.file(name), name)
	return nil
}

// persons returns the given persons, and all persons with an existing seed.
func (d *directory) persons(wanted []string) ([]string, error) {
	seeds, err := filepath.Glob(d.file("*.nk"))
	if err != nil {
		return nil, err
	}
	all := append([]string{worker}, wanted...)
	for _, seed := range seeds {
		if user := bus.UserOf(seed); schemas.ValidToken(user) && !slices.Contains(natsUsers, user) {
			all = append(all, user)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// users creates a seed for each user without one, and the permissions of all users.
func (d *directory) users(persons []string, rights string) error {
	var env strings.Builder
	publicKeys := map[string]string{}
	for _, user := range append(slices.Clone(natsUsers), persons...) {
		public, err := d.nkey(user + ".nk")
		if err != nil {
			return err
		}
		publicKeys[user] = public
		if user == worker || slices.Contains(natsUsers, user) { // The permissions name them.
			fmt.Fprintf(&env, "%s=%s\n", nkeyVariable(user), public)
		}
	}
	if err := d.put("nkeys.env", []byte(env.String())); err != nil {
		return err
	}
	if rights == "" {
		return nil
	}
	text, err := os.ReadFile(rights)
	if err != nil {
		return err
	}
	filled, err := fillRights(string(text), persons, publicKeys)
	if err != nil {
		return fmt.Errorf("--rights %s: %w", rights, err)
	}
	return d.put("users.conf", []byte(filled))
}

// nkey returns the public nkey of the user whose seed is in a file. It creates an absent file.
func (d *directory) nkey(name string) (string, error) {
	if !d.has(name) {
		user, err := nkeys.CreateUser()
		if err != nil {
			return "", err
		}
		seed, err := user.Seed()
		if err != nil {
			return "", err
		}
		if err := d.add(name, append(seed, '\n')); err != nil {
			return "", err
		}
	}
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		return "", err
	}
	user, err := nkeys.FromSeed(bytes.TrimSpace(text))
	if err != nil {
		return "", fmt.Errorf("read the seed in %s: %w", d.file(name), err)
	}
	return user.PublicKey()
}

func nkeyVariable(user string) string {
	return "COURIER_NKEY_" + strings.ToUpper(user)
}

// Lines around the permissions of a person.
const (
	personBegin = "# person: begin\n"
	personEnd   = "# person: end\n"
)

// fillRights repeats the block of a person for each of them, and replaces variables by nkeys.
func fillRights(text string, persons []string, publicKeys map[string]string) (string, error) {
	before, rest, begins := strings.Cut(text, personBegin)
	block, after, ends := strings.Cut(rest, personEnd)
	if !begins || !ends {
		return "", fmt.Errorf("no block between the lines %q and %q",
			strings.TrimSpace(personBegin), strings.TrimSpace(personEnd))
	}
	var b strings.Builder
	b.WriteString(before)
	for _, p := range persons {
		b.WriteString(strings.NewReplacer("$"+
			nkeyVariable(worker), publicKeys[p], worker, p).Replace(block))
	}
	b.WriteString(after)
	filled := b.String()
	for _, user := range natsUsers {
		filled = strings.ReplaceAll(filled, "$"+nkeyVariable(user), publicKeys[user])
	}
	return filled, nil
}
