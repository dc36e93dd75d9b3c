package main

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
)

type certsCommand struct {
	Out        string   `help:"Directory for the files; created if absent." required:"" type:"path"`
	Persons    []string `name:"person" help:"Person who submits jobs, 1 to 64 of a-z, 0-9, _ and -; may be repeated. The person worker always exists." sep:","`
	Hosts      []string `name:"host" help:"Further names and addresses of the servers, besides nats, nats-1 to nats-3, nats1 to nats3, clickhouse, gateway and localhost." sep:","`
	Rights     string   `help:"File with the permissions of NATS users, deploy/nats/users.conf. Writes a copy with the nkeys and a block for each person." type:"existingfile"`
	Containers bool     `help:"Fill the folder containers with the files of each container of docker-compose.secure.yml. Needs --rights, now or in an earlier run."`
	Days       int      `help:"Validity of certificates in days." default:"825"`
}

// Help is the end of the help text.
func (c *certsCommand) Help() string {
	return `Creates the credentials of a cluster:
  ca.crt, ca.key          certificate authority
  nats, clickhouse,       certificates and keys (.crt, .key) of the servers, of clients,
  gateway, client,        and of the routes between NATS servers
  routes
  USER.nk                 nkey seed of each NATS user; nkeys.env has the public nkeys
  NAME.token              gateway token of each person, the operator and prometheus;
                          the file tokens has their hashes
  USER.password           password of each ClickHouse user; passwords.xml has their hashes

Existing files are kept: run the same command with another --person to add one. A file that would
change is written beside the existing one as NAME.new. Only the owner can read the files. Keep
ca.key and operator.nk in a safe place, not on a server.

Example:
  courier certs --out secrets --person ada --rights deploy/nats/users.conf --containers`
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

// worker is the person for whom the containers of the local cluster run jobs. The block of worker in
// the permissions is the template for every other person.
const worker = "worker"

func (c *certsCommand) Run(w *world) error {
	for _, p := range c.Persons {
		if taken := append(slices.Clone(natsUsers), scraper); !schemas.ValidToken(p) ||
			slices.Contains(taken, p) {
			return fmt.Errorf("--person %q: want a name of 1 to 64 of a-z, 0-9, _ and -, and"+
				" none of %s",
				p, strings.Join(taken, ", "))
		}
	}
	if c.Days < 1 {
		return fmt.Errorf("--days %d: want 1 or more", c.Days)
	}
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	d := &certsDir{path: c.Out, until: time.Now().AddDate(0, 0, c.Days)}
	if err := d.certificates(c.Hosts); err != nil {
		return err
	}
	persons, err := d.persons(c.Persons)
	if err != nil {
		return err
	}
	if err := d.users(persons, c.Rights); err != nil {
		return err
	}
	if err := errors.Join(d.tokens(persons), d.passwords()); err != nil {
		return err
	}
	if c.Containers {
		if err := d.containers(); err != nil {
			return fmt.Errorf("--containers: %w", err)
		}
	}
	for _, line := range d.lines {
		fmt.Fprintln(w.stdout, line)
	}
	return nil
}

// certsDir is the directory of the credentials.
type certsDir struct {
	path  string
	until time.Time // end of the validity of certificates
	lines []string  // of the report
}

func (d *certsDir) file(name string) string { return filepath.Join(d.path, name) }

func (d *certsDir) report(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// has reports whether a file exists, which is then kept.
func (d *certsDir) has(name string) bool {
	_, err := os.Lstat(d.file(name))
	if err == nil {
		d.report("kept     %s", d.file(name))
	}
	return err == nil
}

// add creates a file that only its owner can read.
func (d *certsDir) add(name string, data []byte) error {
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

// put adds a file that is derived from others. If an existing one differs, the new one is written
// beside it.
func (d *certsDir) put(name string, data []byte) error {
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

// persons returns the given persons, and those that have a seed already.
func (d *certsDir) persons(wanted []string) ([]string, error) {
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
func (d *certsDir) users(persons []string, rights string) error {
	var env strings.Builder
	nkeys := map[string]string{}
	for _, user := range append(slices.Clone(natsUsers), persons...) {
		name := user + ".nk"
		if !d.has(name) {
			seed, _, err := bus.NewUser()
			if err != nil {
				return err
			}
			if err := d.add(name, []byte(seed+"\n")); err != nil {
				return err
			}
		}
		public, err := bus.PublicNkey(d.file(name))
		if err != nil {
			return err
		}
		nkeys[user] = public
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
	filled, err := fillRights(string(text), persons, nkeys)
	if err != nil {
		return fmt.Errorf("--rights %s: %w", rights, err)
	}
	return d.put("users.conf", []byte(filled))
}

// nkeyVariable returns the name of the variable with the public nkey of a user.
func nkeyVariable(user string) string {
	return "COURIER_NKEY_" + strings.ToUpper(user)
}

// Lines around the permissions of a person.
const (
	personBegin = "# person: begin\n"
	personEnd   = "# person: end\n"
)

// fillRights repeats the block of a person for each of them, and replaces variables by nkeys.
func fillRights(text string, persons []string, nkeys map[string]string) (string, error) {
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
			nkeyVariable(worker), nkeys[p], worker, p).Replace(block))
	}
	b.WriteString(after)
	filled := b.String()
	for _, user := range natsUsers {
		filled = strings.ReplaceAll(filled, "$"+nkeyVariable(user), nkeys[user])
	}
	return filled, nil
}
