package store

import (
	"fmt"
	"strconv"
	"time"
)

// Report is what Verify compared and found.
type Report struct {
	Repair  bool            `json:"repair"` // what differs was mended where Mended says so
	Streams []*StreamReport `json:"streams"`
}

// StreamReport is one stream's part of a report.
type StreamReport struct {
	Stream  string          `json:"stream"`
	First   uint64          `json:"first"`  // first sequence that the log keeps
	Last    uint64          `json:"last"`   // last sequence that stores have written; under First: nothing was compared
	Events  uint64          `json:"events"` // of the log from First to Last that have a table, copies included
	Tables  []*TableReport  `json:"tables"`
	RollUps []*RollUpReport `json:"roll_ups,omitempty"`
}

// TableReport is one table's part of a report.
type TableReport struct {
	Table   string  `json:"table"`
	Expired uint64  `json:"expired"` // events of the log that were not compared, because the table keeps, or was asked about, later hours only
	Hours   []*Hour `json:"hours"`   // all that were compared, by time
}

// Hour compares the events that happened in one hour.
type Hour struct {
	At            time.Time `json:"at"`           // its begin
	LogEvents     uint64    `json:"log_events"`   // distinct event_ids
	LogChecksum   Checksum  `json:"log_checksum"` // over them
	TableEvents   uint64    `json:"table_events"`
	TableChecksum Checksum  `json:"table_checksum"`
	Older         uint64    `json:"older,omitempty"`   // events of the table that the log has dropped: nothing is wrong with them
	Missing       uint64    `json:"missing,omitempty"` // events of the log that the table lacks
	Double        uint64    `json:"double,omitempty"`  // rows beyond the first of an event, older ones included
	Extra         uint64    `json:"extra,omitempty"`   // events of the table that the log lacks although it keeps their place
	MissingIDs    []string  `json:"missing_ids,omitempty"`
	DoubleIDs     []string  `json:"double_ids,omitempty"`
	ExtraIDs      []string  `json:"extra_ids,omitempty"` // each list: the first few
	Mended        bool      `json:"mended,omitempty"`    // it differed, was repaired, and does not differ any more

	suspect    bool   // number or checksum differ, or there are doubles
	rows       uint64 // of the table
	from, last uint64 // sequences of its first and last event in the log
	messages   uint64 // of the log, copies included
}

// Differs reports whether log and table differed in this hour when it was found.
func (h *Hour) Differs() bool { return h.Missing+h.Double+h.Extra > 0 }

// RollUpReport compares a roll-up with the table that it is of.
type RollUpReport struct {
	RollUp string        `json:"roll_up"`
	Table  string        `json:"table"`
	From   time.Time     `json:"from"`  // what happened before was not compared
	Hours  []*RollUpHour `json:"hours"` // those that differ, by time

	// Busy are rows that may differ: stores were writing them at every look.
	Busy uint64 `json:"busy,omitempty"`
}

// RollUpHour is an hour in which a roll-up differs from its table.
type RollUpHour struct {
	At      time.Time `json:"at,omitzero"`       // its begin; zero for all rows of a roll-up whose rows have no hour
	Missing uint64    `json:"missing,omitempty"` // rows that it lacks
	Wrong   uint64    `json:"wrong,omitempty"`   // rows with other figures
	Extra   uint64    `json:"extra,omitempty"`   // rows of which the table has nothing
	Keys    []string  `json:"keys"`              // of the first few
	Mended  bool      `json:"mended,omitempty"`  // it differed, was repaired, and does not differ any more
}

// mostIDs is the length of the lists of a report.
const mostIDs = 10

// note adds to such a list.
func note(list *[]string, ids ...string) {
	*list = append(*list, ids[:min(len(ids), mostIDs-len(*list))]...)
}

// Different returns in how many hours of tables and roll-ups something differed,
// and in how many of them it still does.
func (r *Report) Different() (found, left int) {
	count := func(differs, mended bool) {
		if differs {
			found++
			if !mended {
				left++
			}
		}
	}
	for _, s := range r.Streams {
		for _, t := range s.Tables {
			for _, h := range t.Hours {
				count(h.Differs(), h.Mended)
			}
		}
		for _, u := range s.RollUps {
			for _, h := range u.Hours {
				count(true, h.Mended)
			}
		}
	}
	return found, left
}

// Busy returns how many rows of roll-ups could not be judged.
func (r *Report) Busy() (rows uint64) {
	for _, s := range r.Streams {
		for _, u := range s.RollUps {
			rows += u.Busy
		}
	}
	return rows
}

// Checksum is the sum of the events' hashes modulo 2^64; in JSON sixteen hex digits.
type Checksum uint64

// String returns sixteen hex digits.
func (c Checksum) String() string { return fmt.Sprintf("%016x", uint64(c)) }

// MarshalText writes sixteen hex digits.
func (c Checksum) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *Checksum) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("read checksum: %w", err)
	}
	*c = Checksum(n)
	return nil
}
