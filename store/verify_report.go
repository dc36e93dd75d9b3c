package store

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report is the result of a verification.
type Report struct {
	OK        bool            `json:"ok"`        // nothing differs
	Different int             `json:"differing"` // hours of tables and roll-ups
	Streams   []*StreamReport `json:"streams"`

	Damaged []string `json:"-"` // streams whose tables or roll-ups differ
}

// newReport counts the differences of streams.
func newReport(streams []*StreamReport) *Report {
	r := &Report{Streams: streams}
	for _, s := range streams {
		n := s.different()
		r.Different += n
		if n > 0 && !slices.Contains(r.Damaged, s.Stream) {
			r.Damaged = append(r.Damaged, s.Stream)
		}
	}
	r.OK = r.Different == 0
	return r
}

// StreamReport is the result for one stream.
type StreamReport struct {
	Stream string `json:"stream"`
	Shard  int    `json:"shard,omitempty"` // of a cluster, from 1
	First  uint64 `json:"first"`           // first sequence in the log

	// Last is the last sequence that a store has written. If it is below First, nothing was
	// compared.
	Last uint64 `json:"last"`

	// Events counts the events of the log from First to Last that belong to a table of the
	// shard, including duplicates.
	Events uint64 `json:"events"`

	Tables  []*TableReport  `json:"tables"`
	RollUps []*RollUpReport `json:"roll_ups,omitempty"`
}

// TableReport is the result for one table.
type TableReport struct {
	Table string `json:"table"`

	// Expired counts the events of the log that were not compared, because the table keeps only later
	// hours.
	Expired uint64 `json:"expired"`

	Hours []*Hour `json:"hours"` // all compared hours, by time
}

// Hour compares the events of one hour.
type Hour struct {
	At          time.Time `json:"at"`         // start of the hour
	LogEvents   uint64    `json:"log_events"` // distinct event_ids
	TableEvents uint64    `json:"table_events"`

	Older   uint64 `json:"older,omitempty"`   // events in the table that the log has dropped
	Missing uint64 `json:"missing,omitempty"` // events in the log but not in the table
	Double  uint64 `json:"double,omitempty"`  // duplicate rows, including those of older events
	Extra   uint64 `json:"extra,omitempty"`   // events in the table without an event in the log

	// Each list holds the first few IDs.
	MissingIDs []string `json:"missing_ids,omitempty"`
	DoubleIDs  []string `json:"double_ids,omitempty"`
	ExtraIDs   []string `json:"extra_ids,omitempty"`
}

// Differs reports whether log and table differ in this hour.
func (h *Hour) Differs() bool { return h.Missing+h.Double+h.Extra > 0 }

// RollUpReport compares a roll-up with its table.
type RollUpReport struct {
	RollUp string        `json:"roll_up"`
	Table  string        `json:"table"`
	From   time.Time     `json:"from"`  // start of the compared period
	Hours  []*RollUpHour `json:"hours"` // hours that differ, by time

	// Busy counts rows that may differ: a store wrote to them during the comparison.
	Busy uint64 `json:"busy,omitempty"`
}

// RollUpHour is an hour in which a roll-up differs from its table.
type RollUpHour struct {
	At      time.Time `json:"at,omitzero"`       // start; zero if the rows have no hour
	Missing uint64    `json:"missing,omitempty"` // rows that the roll-up lacks
	Wrong   uint64    `json:"wrong,omitempty"`   // rows with wrong values
	Extra   uint64    `json:"extra,omitempty"`   // rows without any row in the table
	Keys    []string  `json:"keys"`              // of the first few rows
}

const maxListed = 10

func appendLimited(list *[]string, ids ...string) {
	*list = append(*list, ids[:min(len(ids), maxListed-len(*list))]...)
}

// different returns the number of hours of the stream's tables and roll-ups that differ.
func (s *StreamReport) different() (hours int) {
	for _, t := range s.Tables {
		for _, h := range t.Hours {
			if h.Differs() {
				hours++
			}
		}
	}
	for _, u := range s.RollUps {
		hours += len(u.Hours)
	}
	return hours
}

// WriteText writes the compared numbers, and then the differences in each hour. Tabs separate cells, for
// the caller to align. The JSON also has the first IDs and keys.
func (r *Report) WriteText(out io.Writer) {
	r.writeNumbers(out)
	busy := uint64(0)
	for _, s := range r.Streams {
		for _, u := range s.Tables {
			for _, h := range u.Hours {
				if !h.Differs() {
					continue
				}
				fmt.Fprintf(out, "%s%s %s: %d missing, %d duplicated, %d only in the table\n", s.place(),
					u.Table, h.At.Format(time.RFC3339), h.Missing, h.Double, h.Extra)
			}
		}
		for _, u := range s.RollUps {
			busy += u.Busy
			for _, h := range u.Hours {
				when := "without an hour"
				if !h.At.IsZero() {
					when = h.At.Format(time.RFC3339)
				}
				fmt.Fprintf(out, "%s%s %s: %d rows missing, %d different from %s, %d without events\n",
					s.place(), u.RollUp, when, h.Missing, h.Wrong, u.Table, h.Extra)
			}
		}
	}
	if busy > 0 {
		fmt.Fprintf(out,
			"%d rows of roll-ups were not compared, because stores were writing them:"+
				" verify again later.\n", busy)
	}
	fmt.Fprintln(out, r.conclusion())
}

func (r *Report) writeNumbers(out io.Writer) {
	fmt.Fprintln(out, "stream\tsequences\ttable\thours\tin the log\tin the table\tolder\t"+
		"not compared\tdiffering")
	for _, s := range r.Streams {
		for _, u := range s.Tables {
			var log, table, older, differing uint64
			for _, h := range u.Hours {
				log, table, older = log+h.LogEvents, table+h.TableEvents, older+h.Older
				if h.Differs() {
					differing++
				}
			}
			fmt.Fprintf(out, "%s%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.place(), s.Stream,
				sequences(s), u.Table, len(u.Hours), log, table, older, u.Expired, differing)
		}
		for _, u := range s.RollUps {
			busy := ""
			if u.Busy > 0 {
				busy = fmt.Sprint(u.Busy)
			}
			fmt.Fprintf(out, "%s%s\t\t%s\t\t\t\t\t%s\t%d\n", s.place(), s.Stream, u.RollUp, busy, len(u.Hours))
		}
	}
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

func (r *Report) conclusion() string {
	if r.OK {
		return "Log, tables and roll-ups agree."
	}
	return fmt.Sprintf("%d hours differ (--output json names their events); "+
		"courier store rebuild %s writes their tables again from the log.",
		r.Different, strings.Join(r.Damaged, " "))
}
