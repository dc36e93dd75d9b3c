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
	Out        string   `help:"Directory to fill; made if absent." required:"" type:"path"`
	Persons    []string `name:"person" help:"Person who submits jobs, [a-z0-9_-]{1,64}; repeat for each. One called worker is always there." sep:","`
	Hosts      []string `name:"host" help:"Further names and addresses by which servers are reached, beside nats, nats-1 to nats-3, nats1 to nats3, clickhouse, gateway and localhost." sep:","`
	Rights     string   `help:"File with the rights of users, deploy/nats/users.conf: users.conf in the directory is a copy of it with the nkeys filled in, and a block for each person." type:"existingfile"`
	Containers bool     `help:"Fill the folder containers with what each container of docker-compose.secure.yml is to see; wants the rights, of this run or one before."`
	Days       int      `help:"How long certificates are valid, in days." default:"825"`
}

// Help is the rest of what --help says.
func (c *certsCommand) Help() string {
	return `Makes what a cluster needs to know its own: an authority (ca.crt, ca.key), certificates of the servers (nats, clickhouse,
gateway), one for clients and one for the routes between servers of NATS, an nkey seed for each user of NATS (USER.nk), a
token of the gateway for each person, the operator and prometheus (NAME.token; their hashes are in the file tokens), a password
for each user of ClickHouse (USER.password; their hashes are in passwords.xml), and nkeys.env with the public nkeys. A file
that is there stays, so that the same command with another --person adds one; what would have to change is written beside it
as NAME.new. Only their owner may read the files. ca.key and operator.nk belong into a safe, not onto a server.`
}

// natsUsers are those of deploy/nats/users.conf beside persons; their nkeys are
// variables there.
var natsUsers = []string{"advisor", "store", "trainer", "collector", "gateway", schemas.Operator, "system"}

// worker is the person for whom the containers of the local cluster run jobs. His
// block in the rights is the pattern for every other.
const worker = "worker"

// Run fills the directory and says what it did.
func (c *certsCommand) Run(w *world) error {
	for _, p := range c.Persons {
		if taken := append(slices.Clone(natsUsers), scraper); !schemas.ValidToken(p) || slices.Contains(taken, p) {
			return fmt.Errorf("--person %q: want a name of 1 to 64 of a-z, 0-9, _ and -, and none of %s", p, strings.Join(taken, ", "))
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
	for _, line := range d.said {
		fmt.Fprintln(w.stdout, line)
	}
	return nil
}

// certsDir is the directory that is filled.
type certsDir struct {
	path  string
	until time.Time // certificates are valid
	said  []string
}

func (d *certsDir) file(name string) string { return filepath.Join(d.path, name) }

func (d *certsDir) say(format string, args ...any) {
	d.said = append(d.said, fmt.Sprintf(format, args...))
}

// has tells whether a file is there, and says that it stays.
func (d *certsDir) has(name string) bool {
	_, err := os.Lstat(d.file(name))
	if err == nil {
		d.say("kept     %s", d.file(name))
	}
	return err == nil
}

// add writes a file that is not there, for its owner alone.
func (d *certsDir) add(name string, data []byte) error {
	f, err := os.OpenFile(d.file(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	d.say("made     %s", d.file(name))
	return nil
}

// put adds what follows from other files; where it says something else than the
// one that is there, it stands beside it.
func (d *certsDir) put(name string, data []byte) error {
	old, err := os.ReadFile(d.file(name))
	if errors.Is(err, os.ErrNotExist) {
		return d.add(name, data)
	}
	if err != nil {
		return err
	}
	if bytes.Equal(old, data) {
		d.say("kept     %s", d.file(name))
		return nil
	}
	if err := os.WriteFile(d.file(name+".new"), data, 0o600); err != nil {
		return err
	}
	d.say("differs  %s: what it would be now is in %s.new", d.file(name), name)
	return nil
}

// persons are those that are wanted, and those that have a seed already.
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

// users makes a seed for each user that has none, and the rights of all.
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
		if user == worker || slices.Contains(natsUsers, user) { // those that the rights name
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

// nkeyVariable is the variable that holds a user's public nkey.
func nkeyVariable(user string) string {
	return "COURIER_NKEY_" + strings.ToUpper(user)
}

// Lines around the rights of a person.
const (
	personBegin = "# person: begin\n"
	personEnd   = "# person: end\n"
)

// fillRights writes the block of a person for each of them, and nkeys for their
// variables.
func fillRights(text string, persons []string, nkeys map[string]string) (string, error) {
	before, rest, begins := strings.Cut(text, personBegin)
	block, after, ends := strings.Cut(rest, personEnd)
	if !begins || !ends {
		return "", fmt.Errorf("has no block between the lines %q and %q", strings.TrimSpace(personBegin), strings.TrimSpace(personEnd))
	}
	var b strings.Builder
	b.WriteString(before)
	for _, p := range persons {
		b.WriteString(strings.NewReplacer("$"+nkeyVariable(worker), nkeys[p], worker, p).Replace(block))
	}
	b.WriteString(after)
	filled := b.String()
	for _, user := range natsUsers {
		filled = strings.ReplaceAll(filled, "$"+nkeyVariable(user), nkeys[user])
	}
	return filled, nil
}
