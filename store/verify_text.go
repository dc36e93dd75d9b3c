package store

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// VerifyResult is a Report with its conclusion, as courier store verify --output json prints it.
type VerifyResult struct {
	OK    bool `json:"ok"`        // nothing differs
	Found int  `json:"differing"` // differing hours of tables and roll-ups
	*Report
}

// NewVerifyResult counts the differences of a report.
func NewVerifyResult(r *Report) *VerifyResult {
	found := r.Different()
	return &VerifyResult{OK: found == 0, Found: found, Report: r}
}

// WriteText writes the compared numbers, and then each hour that differs.
func (v *VerifyResult) WriteText(out io.Writer) error {
	if err := v.writeNumbers(out); err != nil {
		return err
	}
	for _, s := range v.Streams {
		for _, u := range s.Tables {
			for _, h := range u.Hours {
				if h.Differs() {
					fmt.Fprintf(out, "%s%s %s: %s\n", s.place(), u.Table, h.At.Format(time.RFC3339), h.text())
				}
			}
		}
		for _, u := range s.RollUps {
			for _, h := range u.Hours {
				fmt.Fprintf(out, "%s%s %s\n", s.place(), u.RollUp, h.text(u.Table))
			}
		}
	}
	if busy := v.Busy(); busy > 0 {
		fmt.Fprintf(out,
			"%d rows of roll-ups were not compared, because stores were writing them:"+
				" verify again later.\n", busy)
	}
	_, err := fmt.Fprintln(out, v.conclusion())
	return err
}

// writeNumbers writes a table of the compared numbers.
func (v *VerifyResult) writeNumbers(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "stream\tsequences\ttable\thours\tin the log\tin the table\tolder\t"+
		"not compared\tdiffering")
	for _, s := range v.Streams {
		for _, u := range s.Tables {
			var log, table, older, differing uint64
			for _, h := range u.Hours {
				log, table, older = log+h.LogEvents, table+h.TableEvents, older+h.Older
				if h.Differs() {
					differing++
				}
			}
			fmt.Fprintf(t, "%s%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.place(), s.Stream,
				sequences(s), u.Table, len(u.Hours), log, table, older, u.Expired, differing)
		}
		for _, u := range s.RollUps {
			busy := ""
			if u.Busy > 0 {
				busy = fmt.Sprint(u.Busy)
			}
			fmt.Fprintf(t, "%s%s\t\t%s\t\t\t\t\t%s\t%d\n", s.place(), s.Stream, u.RollUp, busy, len(u.Hours))
		}
	}
	return t.Flush()
}

// place names the shard of a cluster, before a name.
func (s *StreamReport) place() string {
	if s.Shard == 0 {
		return ""
	}
	return fmt.Sprintf("shard %d ", s.Shard)
}

func sequences(s *StreamReport) string {
	if s.First > s.Last {
		return "none"
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// conclusion returns the last line.
func (v *VerifyResult) conclusion() string {
	if v.OK {
		return "Log, tables and roll-ups agree."
	}
	return fmt.Sprintf("%d hours differ; courier store rebuild %s writes their tables again from "+
		"the log.", v.Found, strings.Join(v.DamagedStreams(), " "))
}

// text describes the differences in an hour of a table.
func (h *Hour) text() string {
	var words []string
	add := func(n uint64, what string, ids []string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s (%s)", n, what, some(n, ids)))
		}
	}
	add(h.Missing, "missing in the table", h.MissingIDs)
	add(h.Double, "duplicated in the table", h.DoubleIDs)
	add(h.Extra, "only in the table, although the log has their sequence range", h.ExtraIDs)
	words = append(words,
		fmt.Sprintf("%d in the log, %s, and %d in the table, %s", h.LogEvents, h.LogChecksum,
			h.TableEvents, h.TableChecksum))
	return strings.Join(words, "; ")
}

// text describes the differences between an hour of a roll-up and its table.
func (h *RollUpHour) text(table string) string {
	var words []string
	for _, w := range []struct {
		n    uint64
		what string
	}{
		{h.Missing, "missing"},
		{h.Wrong, "different from " + table},
		{h.Extra, "without events in " + table},
	} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d rows %s", w.n, w.what))
		}
	}
	line := strings.Join(words, ", ") + ": " + some(h.Missing+h.Wrong+h.Extra, h.Keys)
	if !h.At.IsZero() {
		line = h.At.Format(time.RFC3339) + ": " + line
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
