package importer

import "time"

// Options describe the sources.
type Options struct {
	// Columns maps fields to their names in the source; other fields have known names.
	Columns map[string]string
	// Defaults maps fields to the values that a source lacks.
	Defaults map[string]string
	// Where maps columns to the values of the rows to import; other rows are skipped.
	Where map[string]string
	// Since is the start of the first run without timestamps; such runs are scheduled sequentially
	// from it. Zero: they are rejected.
	Since time.Time
	// Zone is the time zone of timestamps without one; nil: such timestamps are refused.
	Zone *time.Location
	// Now is the maximum end of a run; zero: not checked.
	Now time.Time
}

// Reader reads runs from sources.
type Reader struct {
	o     Options
	found ReadResult
}

// ReadResult is the result of a Reader.
type ReadResult struct {
	Read    int               `json:"read"`                     // runs in the sources, without LeftOut
	LeftOut int               `json:"left_out,omitempty"`       // rows skipped by Options.Where
	LaidOut int               `json:"laid_out,omitempty"`       // runs scheduled from Options.Since
	Columns map[string]string `json:"columns,omitempty"`        // field to the name of its column
	Unused  []string          `json:"unused_columns,omitempty"` // columns that no field was read from
	Runs    []*PastRun        `json:"-"`                        // oldest first
	Refused []*Refusal        `json:"refusals"`

	// Unreadable is the number of sources that have no run because none of their lines can be read,
	// such as an empty table. They are not in Read, but in Refused.
	Unreadable int `json:"unreadable_sources,omitempty"`
}

// New returns a Reader that has read nothing.
func New(o Options) *Reader {
	return &Reader{o, ReadResult{Columns: map[string]string{}, Refused: []*Refusal{}}}
}

// refuse records a refusal.
func (r *Reader) refuse(at Place, why *Refusal) {
	why.Place = at
	r.found.Refused = append(r.found.Refused, why)
}
