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
	ClickHouseURL string `name:"clickhouse-url" help:"ClickHouse that is verified, such as clickhouse://user:password@host:9000/courier." env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	Data   string        `help:"Data directory of a courier all that is verified instead, whatever --clickhouse-url says; its NATS and ClickHouse are found there." type:"path"`
	Since  time.Duration `help:"Only events of the last so long, such as 24h; 0s: all that the tables keep." default:"0s" env:"COURIER_SINCE"`
	Repair bool          `help:"Bring in what is missing by replaying it from the log, take out what is double, compute wrong roll-ups anew."`
}

// Help is the rest of what --help says.
func (c *storeVerifyCommand) Help() string {
	return "Compares, for each hour, the distinct events of the log with those of the tables, by number and checksum, and the roll-ups with their tables, while " +
		"stores write; what is in flight is no difference, nor is what the log has dropped by age. Reading is enough for the user of ClickHouse, unless it repairs. " +
		"The exit status is 1 when something differs, after a repair when something still does."
}

// verified is what courier store verify -o json prints.
type verified struct {
	OK    bool `json:"ok"`        // nothing differs (any more)
	Found int  `json:"differing"` // hours of tables and roll-ups
	Left  int  `json:"left"`      // of them after a repair
	*store.Report
}

// Run compares and prints.
func (c *storeVerifyCommand) Run(w *world) error {
	if err := c.locate(); err != nil {
		return err
	}
	return compare(w, c.natsFlags, c.clickHouseFlags.options(c.ClickHouseURL), c.Output, store.VerifyOptions{Since: c.Since, Repair: c.Repair}, nil)
}

// compare does what is to be done first, compares log and tables, and prints what differs.
func compare(w *world, n natsFlags, database store.Options, output string, o store.VerifyOptions, first func(*bus.Bus, *store.Database, *progress) error) error {
	b, err := n.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	// The reader of courier all may ask for ten minutes at most, and the driver asks for five seconds more.
	database.Timeout = 9 * time.Minute
	d, err := store.Open(w.ctx, database, w.log, nil)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // the process ends anyhow
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

// locate finds the parts of a courier all. A repair writes as its store does.
func (c *storeVerifyCommand) locate() error {
	if c.Data == "" {
		if c.ClickHouseURL != "" {
			return nil
		}
		return errors.New("name ClickHouse with --clickhouse-url, or the directory of a courier all with --data")
	}
	e, err := openedIn(c.Data)
	if err != nil {
		return err
	}
	at := engine.Endpoint{NativeURL: e.ClickHouseNativeURL, Database: e.ClickHouseDatabase, User: e.ClickHouseUser, Password: e.ClickHousePassword}
	if c.Repair {
		if at.User, at.Password, err = engine.Writer(filepath.Join(c.Data, "clickhouse")); err != nil {
			return err
		}
	}
	c.clickHouseFlags = clickHouseFlags{} // the address says it all
	c.ClickHouseURL, c.NATSURL = storeURL(at), e.NATSURL
	return nil
}

// progress is a bar for each thing that is done, on a terminal.
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

// end takes the bar away: what is printed next says all.
func (p *progress) end() {
	if p.bar != nil {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// printVerified writes what was compared, then each hour that differs.
func printVerified(out io.Writer, v verified) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "stream\tsequences\ttable\thours\tin the log\tin the table\tolder\tnot compared\tdiffering")
	for _, s := range v.Streams {
		for _, u := range s.Tables {
			var log, have, older, differ uint64
			for _, h := range u.Hours {
				log, have, older = log+h.LogEvents, have+h.TableEvents, older+h.Older
				if h.Differs() {
					differ++
				}
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Stream, sequences(s), u.Table, len(u.Hours), log, have, older, u.Expired, differ)
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
		fmt.Fprintf(out, "%d rows of roll-ups were being written all the time and are not compared: "+
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

// verdict is the last line.
func (v verified) verdict() string {
	switch {
	case v.Found == 0:
		return "Log, tables and roll-ups agree."
	case v.OK:
		return fmt.Sprintf("%d hours differed and are repaired: log, tables and roll-ups agree.", v.Found)
	case v.Repair:
		return fmt.Sprintf("%d hours differed, %d of them still do.", v.Found, v.Left)
	}
	return fmt.Sprintf("%d hours differ; courier store verify --repair replays what is missing from the log.", v.Found)
}

// wordsOf says what differs in an hour of a table.
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
	words = append(words, fmt.Sprintf("%d in the log, %s, and %d in the table, %s", h.LogEvents, h.LogChecksum, h.TableEvents, h.TableChecksum))
	if h.Mended {
		words = append(words, "repaired")
	}
	return strings.Join(words, "; ")
}

// wordsOfRollUp says what differs in an hour of a roll-up.
func wordsOfRollUp(table string, h *store.RollUpHour) string {
	var words []string
	for _, w := range []struct {
		n    uint64
		what string
	}{{h.Missing, "missing"}, {h.Wrong, "not what " + table + " says"}, {h.Extra, "of which " + table + " has nothing"}} {
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

// some lists the first few of n.
func some(n uint64, list []string) string {
	const most = 3
	text := strings.Join(list[:min(len(list), most)], ", ")
	if n > most {
		text += ", …"
	}
	return text
}
