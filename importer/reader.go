package importer

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Options say what sources do not.
type Options struct {
	Columns  map[string]string // field to its name in the source; what is absent goes by known names
	Defaults map[string]string // field to its value, where the source has none
	Where    map[string]string // column to the value that rows of a table must have; others are left out
	Names    *regexp.Regexp    // its named groups are fields, read from a file's name; nil: none
	Since    time.Time         // runs without times of their own are laid out from here, one after another; zero: they are refused
	Zone     *time.Location    // of instants without one; nil: UTC
	Now      time.Time         // nothing of the past is later; zero: not checked
}

// Reader gathers runs from sources.
type Reader struct {
	o       Options
	runs    []*Run
	refused []*Refusal
	read    int
	left    int
	columns map[string]string
	laidOut int
}

// Result is what a Reader found.
type Result struct {
	Read    int               // runs that were met
	LeftOut int               // rows that Options.Where left out; they are not among Read
	LaidOut int               // runs whose times follow Options.Since
	Columns map[string]string // field to the name of the column that it was read from
	Runs    []*Run            // oldest first
	Refused []*Refusal
}

// New returns a Reader that has read nothing.
func New(o Options) *Reader {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &Reader{o: o, columns: map[string]string{}}
}

// Formats of sources.
const (
	FormatAuto   = "auto"   // by a file's name and begin
	FormatCSV    = "csv"    // a row per run, or per epoch
	FormatJSON   = "json"   // a line per run, or per event of the contract
	FormatBigDL  = "bigdl"  // the log of a BigDL driver: one run
	FormatSpark  = "spark"  // Spark's event log: one run
	FormatMLflow = "mlflow" // the directory of MLflow's file store
)

// Formats lists every format.
func Formats() []string {
	return []string{FormatAuto, FormatCSV, FormatJSON, FormatBigDL, FormatSpark, FormatMLflow}
}

// Detect tells the format of a file by its name and first bytes; empty: none.
func Detect(name string, begin []byte) string {
	text := string(begin)
	switch extension := strings.ToLower(path.Ext(name)); {
	case strings.Contains(text, `"Event":"SparkListener`), strings.Contains(text, `"Event":"org.apache.spark`):
		return FormatSpark
	case strings.Contains(text, "][Wall Clock "):
		return FormatBigDL
	case extension == ".csv" || extension == ".tsv":
		return FormatCSV
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		return FormatJSON
	case extension == ".log":
		return FormatBigDL
	}
	return ""
}

// File reads a source of a format other than FormatAuto and FormatMLflow. What is
// wrong with runs is kept for Finish; the error is one of reading.
func (r *Reader) File(format, name string, in io.Reader) error {
	if format == FormatCSV {
		return r.csv(name, in)
	}
	if len(r.o.Where) > 0 {
		return fmt.Errorf("%s: --where chooses rows of tables, and this is none", name)
	}
	switch format {
	case FormatJSON:
		return r.jsonLines(name, in)
	case FormatBigDL:
		return r.bigdl(name, in)
	case FormatSpark:
		return r.spark(name, in)
	}
	return fmt.Errorf("%s: no file has the format %s", name, format)
}

// Finish lays out the runs without times, looks for copies, names the jobs, and
// returns all, oldest first.
func (r *Reader) Finish() Result {
	r.layOut()
	r.copies()
	r.future()
	seen := map[string]int{}
	for _, run := range r.runs {
		if run.kept != nil {
			continue
		}
		laid := run.StartedAt
		if run.timeless {
			run.StartedAt = time.Time{} // when it was laid out is no part of its name
		}
		content := run.content()
		run.name(seen[content])
		seen[content]++
		run.StartedAt = laid
	}
	slices.SortStableFunc(r.runs, func(a, b *Run) int { return a.StartedAt.Compare(b.StartedAt) })
	return Result{Read: r.read, LeftOut: r.left, LaidOut: r.laidOut, Columns: r.columns, Runs: r.runs, Refused: r.refused}
}

// refuse keeps why a run is left out.
func (r *Reader) refuse(at Place, why *Refusal) {
	why.Place = at
	r.refused = append(r.refused, why)
}

// layOut gives runs without times of their own some: one after another, so that
// none is beside another that it may never have met.
func (r *Reader) layOut() {
	next := r.o.Since
	r.filter(func(run *Run) *Refusal {
		if !run.timeless {
			return nil
		}
		if r.o.Since.IsZero() {
			return refuse(ReasonMissing, FieldStartedAt, "the source does not say when it ran: give --since, such as --since 2020-10-21, and such runs are laid one after another from there")
		}
		run.StartedAt = next
		next = run.EndedAt().Add(time.Second)
		r.laidOut++
		return nil
	})
}

// future refuses what has not happened yet.
func (r *Reader) future() {
	r.filter(func(run *Run) *Refusal {
		if r.o.Now.IsZero() || !run.EndedAt().After(r.o.Now) {
			return nil
		}
		field := FieldEndedAt
		if run.timeless {
			field = "since"
		}
		return refuse(ReasonFuture, field, "%s is later than now: the past is over", run.EndedAt().UTC().Format(time.RFC3339))
	})
}

// filter keeps the runs that why has nothing against.
func (r *Reader) filter(why func(*Run) *Refusal) {
	kept := r.runs[:0:0]
	for _, run := range r.runs {
		if w := why(run); w != nil {
			r.refuse(run.Place, w)
			continue
		}
		kept = append(kept, run)
	}
	r.runs = kept
}

// draft is a run as its source tells it.
type draft struct {
	Place
	values map[string]string // by field
	called map[string]string // field to its name in the source, for messages
	epochs []Epoch
	broken *Refusal // why it cannot be a run
	nodes  []string // where it ran; none: as the fields say
}

// value returns what the source, the file's name or the defaults say of a field.
func (r *Reader) value(d *draft, field string) string {
	if v := strings.TrimSpace(d.values[field]); v != "" {
		return v
	}
	if r.o.Names != nil {
		if m := r.o.Names.FindStringSubmatch(path.Base(d.File)); m != nil {
			if i := r.o.Names.SubexpIndex(field); i > 0 && m[i] != "" {
				return m[i]
			}
		}
	}
	return strings.TrimSpace(r.o.Defaults[field])
}

// place adds a draft as a run, or keeps why not.
func (r *Reader) place(d *draft) {
	r.read++
	run, why := r.build(d)
	if why != nil {
		why.Field = callField(d.called, why.Field)
		r.refuse(d.Place, why)
		return
	}
	r.runs = append(r.runs, run)
}

// nodeOf is the node of runs that name none: the source's own, so that runs of
// several sources are never taken to have been beside each other.
func nodeOf(file string) string {
	base := path.Base(file)
	return schemas.NodeName(strings.TrimSuffix(base, path.Ext(base)))
}
