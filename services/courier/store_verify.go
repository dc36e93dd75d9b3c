package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"courier/bus"
	"courier/services"
	"courier/store"
	"courier/store/engine"
)

type storeVerifyCommand struct {
	natsFlags
	outputFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of the ClickHouse to verify, such as clickhouse://user:password@host:9000/courier." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Data   string        `help:"Data directory of a courier all to verify instead; replaces --nats-url and --clickhouse-url." type:"path"`
	Since  time.Duration `help:"Only verify events of this last period, such as 24h; 0s: everything that the tables keep." default:"0s" env:"COURIER_SINCE"`
	Repair bool          `help:"Insert missing events from the log, remove duplicates, compute wrong roll-ups again."`
}

// Help is the end of the help text.
func (c *storeVerifyCommand) Help() string {
	return `Compares the distinct events of the log with those of the tables for each hour, by number and
checksum, and the roll-ups with their tables. Stores may run at the same time: events in flight, and
events that the log has dropped by age, are no difference. Without --repair the ClickHouse user needs
read access only. The exit status is 1 when something differs, with --repair when something still
differs.

Examples:
  courier store verify --data courier-data
  courier store verify --clickhouse-url clickhouse://reader@clickhouse:9000/courier --since 24h`
}

// verified is the JSON output of courier store verify.
type verified struct {
	OK    bool `json:"ok"`        // nothing differs, after a repair if there was one
	Found int  `json:"differing"` // differing hours of tables and roll-ups
	Left  int  `json:"left"`      // of these after a repair
	*store.Report
}

func (c *storeVerifyCommand) Run(w *world) error {
	if err := c.locate(); err != nil {
		return err
	}
	return compare(w, c.natsFlags, c.clickHouseFlags.options(c.ClickHouseURL), c.Output, store.VerifyOptions{
		Since:  c.Since,
		Repair: c.Repair,
	}, nil)
}

// compare calls first, compares log and tables, and prints the differences.
func compare(
	w *world,
	n natsFlags,
	database store.Options,
	output string,
	o store.VerifyOptions,
	first func(*bus.Bus, *store.Database, *progress) error,
) error {
	b, err := n.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	// A query of the read-only user may take ten minutes; the driver adds five seconds.
	database.Timeout = 9 * time.Minute
	d, err := store.Open(w.ctx, database, w.log, nil)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // The process ends.
	p := &progress{out: w.stderr}
	if first != nil {
		if err := first(b, d, p); err != nil {
			p.end()
			return err
		}
	}
	o.Progress = p.draw
	r, err := store.NewVerifier(b, d, w.log, o).Verify(w.ctx)
	p.end()
	if err != nil {
		return err
	}
	v := verified{Report: r}
	v.Found, v.Left = r.Different()
	v.OK = v.Left == 0
	if output == "json" {
		err = indented(w.stdout, v)
	} else {
		err = printVerified(w.stdout, v)
	}
	if err == nil && !v.OK {
		return exitStatus(1)
	}
	return err
}

// locate finds the endpoints of a courier all. A repair uses the credentials of its store.
func (c *storeVerifyCommand) locate() error {
	if c.Data == "" {
		if c.ClickHouseURL != "" {
			return nil
		}
		return errors.New("set --clickhouse-url, or --data to the directory of a courier all")
	}
	e, err := openedIn(c.Data)
	if err != nil {
		return err
	}
	at := engine.Endpoint{
		NativeURL: e.ClickHouseNativeURL,
		Database:  e.ClickHouseDatabase,
		User:      e.ClickHouseUser,
		Password:  e.ClickHousePassword,
	}
	if c.Repair {
		if at.User, at.Password, err = engine.Writer(
			filepath.Join(c.Data, "clickhouse"),
		); err != nil {
			return err
		}
	}
	c.clickHouseFlags = clickHouseFlags{} // The URL has all settings.
	c.ClickHouseURL, c.NATSURL = storeURL(at), e.NATSURL
	return nil
}

// progress draws a bar for each step, on a terminal.
type progress struct {
	out   io.Writer
	doing string
	bar   *bar
	drawn time.Time
}

func (p *progress) draw(doing string, done, total uint64) {
	if total == 0 || !services.IsTerminal(p.out) {
		return
	}
	if p.doing != doing {
		p.doing, p.bar = doing, newBar(p.out, int(total))
	} else if time.Since(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	p.bar.total = int(total)
	p.bar.draw(int(min(done, total)), doing)
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// printVerified writes the compared numbers, then each hour that differs.
func printVerified(out io.Writer, v verified) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t,
		"stream\tsequences\ttable\thours\tin the log\tin the table\tolder\tnot compared\tdiffering")
	for _, s := range v.Streams {
		for _, u := range s.Tables {
			var log, have, older, differ uint64
			for _, h := range u.Hours {
				log, have, older = log+h.LogEvents, have+h.TableEvents, older+h.Older
				if h.Differs() {
					differ++
				}
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Stream, sequences(s),
				u.Table, len(u.Hours), log, have, older, u.Expired, differ)
		}
		for _, u := range s.RollUps {
			busy := ""
			if u.Busy > 0 {
				busy = fmt.Sprint(u.Busy)
			}
			fmt.Fprintf(t, "%s\t\t%s\t\t\t\t\t%s\t%d\n", s.Stream, u.RollUp, busy, len(u.Hours))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range v.Streams {
		for _, u := range s.Tables {
			for _, h := range u.Hours {
				if h.Differs() {
					fmt.Fprintf(out, "%s %s: %s\n", u.Table, h.At.Format(time.RFC3339), wordsOf(h))
				}
			}
		}
		for _, u := range s.RollUps {
			for _, h := range u.Hours {
				fmt.Fprintf(out, "%s %s\n", u.RollUp, wordsOfRollUp(u.Table, h))
			}
		}
	}
	if busy := v.Busy(); busy > 0 {
		fmt.Fprintf(out,
			"%d rows of roll-ups were being written all the time and are not compared: "+
				"verify again later.\n", busy)
	}
	_, err := fmt.Fprintln(out, v.verdict())
	return err
}

func sequences(s *store.StreamReport) string {
	if s.First > s.Last {
		return "none"
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// verdict returns the last line.
func (v verified) verdict() string {
	switch {
	case v.Found == 0:
		return "Log, tables and roll-ups agree."
	case v.OK:
		return fmt.Sprintf("%d hours differed and are repaired: log, tables and roll-ups agree.",
			v.Found)
	case v.Repair:
		return fmt.Sprintf("%d hours differed, %d of them still do.", v.Found, v.Left)
	}
	return fmt.Sprintf("%d hours differ; courier store verify --repair replays what is missing"+
		" from the log.",
		v.Found)
}

// wordsOf describes the differences in an hour of a table.
func wordsOf(h *store.Hour) string {
	var words []string
	add := func(n uint64, what string, ids []string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s (%s)", n, what, some(n, ids)))
		}
	}
	add(h.Missing, "missing in the table", h.MissingIDs)
	add(h.Double, "double in the table", h.DoubleIDs)
	add(h.Extra, "only in the table, although the log keeps their place", h.ExtraIDs)
	words = append(words,
		fmt.Sprintf("%d in the log, %s, and %d in the table, %s", h.LogEvents, h.LogChecksum,
			h.TableEvents, h.TableChecksum))
	if h.Mended {
		words = append(words, "repaired")
	}
	return strings.Join(words, "; ")
}

// wordsOfRollUp describes the differences in an hour of a roll-up.
func wordsOfRollUp(table string, h *store.RollUpHour) string {
	var words []string
	for _, w := range []struct {
		n    uint64
		what string
	}{
		{h.Missing, "missing"},
		{h.Wrong, "not what " + table + " says"},
		{h.Extra, "of which " + table + " has nothing"},
	} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d rows %s", w.n, w.what))
		}
	}
	line := strings.Join(words, ", ") + ": " + some(h.Missing+h.Wrong+h.Extra, h.Keys)
	if !h.At.IsZero() {
		line = h.At.Format(time.RFC3339) + ": " + line
	}
	if h.Mended {
		line += "; repaired"
	}
	return line
}

// some lists the first few of n items.
func some(n uint64, list []string) string {
	const most = 3
	text := strings.Join(list[:min(len(list), most)], ", ")
	if n > most {
		text += ", …"
	}
	return text
}
