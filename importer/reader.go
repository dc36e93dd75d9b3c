package importer

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Options describe the sources.
type Options struct {
	// Columns maps fields to their names in the source; other fields have known names.
	Columns map[string]string
	// Defaults maps fields to the values that a source lacks.
	Defaults map[string]string
	// Where maps columns to the values of the rows to import; other rows are skipped.
	Where map[string]string
	// Names has named groups that are fields in a file name; nil: none.
	Names *regexp.Regexp
	// Since is the start of the first run without timestamps; such runs are scheduled sequentially
	// from it. Zero: they are rejected.
	Since time.Time
	// Zone is the time zone of timestamps without one; nil: such timestamps are refused. The log of a
	// driver, which names none anywhere, is then in UTC.
	Zone *time.Location
	// Now is the maximum end of a run; zero: not checked.
	Now time.Time
}

// Reader reads runs from sources.
type Reader struct {
	o       Options
	runs    []*PastRun
	refused []*Refusal
	read    int               // runs in the sources
	left    int               // rows skipped by Options.Where
	columns map[string]string // field to the name of its column
	unused  map[string]string // see ReadResult.Unused
	laidOut int               // runs scheduled from Options.Since

	unreadable int // see ReadResult.Unreadable
}

// ReadResult is the result of a Reader.
type ReadResult struct {
	Read    int               // runs in the sources, without rows skipped by Options.Where
	LeftOut int               // number of rows skipped by Options.Where
	LaidOut int               // number of runs scheduled from Options.Since
	Columns map[string]string // field to the name of its column
	Unused  map[string]string // column to the field that it resembles, or to ""
	Runs    []*PastRun        // oldest first
	Refused []*Refusal

	// Unreadable is the number of sources that have no run because none of their lines can be read,
	// such as an empty table. They are not in Read, but in Refused.
	Unreadable int
}

// New returns a Reader that has read nothing.
func New(o Options) *Reader {
	return &Reader{o: o, columns: map[string]string{}, unused: map[string]string{}}
}

// Formats of sources.
const (
	FormatAuto   = "auto"   // detected by file name and content
	FormatCSV    = "csv"    // one row per run or epoch
	FormatJSON   = "json"   // one line per run or event
	FormatBigDL  = "bigdl"  // the log of a BigDL driver: one run
	FormatSpark  = "spark"  // Spark's event log: one run
	FormatMLflow = "mlflow" // the directory of MLflow's file store
	FormatSlurm  = "slurm"  // the output of sacct --parsable2
)

// Detect returns the format of a file according to its name and first bytes, or "".
func Detect(name string, begin []byte) string {
	text := string(begin)
	switch extension := strings.ToLower(path.Ext(name)); {
	case strings.Contains(text, `"Event":"SparkListener`),
		strings.Contains(text, `"Event":"org.apache.spark`):
		return FormatSpark
	case strings.HasPrefix(text, "JobID") && strings.Contains(text, "|State|"):
		return FormatSlurm
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

// File reads a source of a format other than FormatAuto and FormatMLflow. It returns only I/O
// errors and invalid options; Finish returns rejected runs.
func (r *Reader) File(format, name string, in io.Reader) error {
	if format == FormatCSV {
		return r.csv(name, in)
	}
	if len(r.o.Where) > 0 {
		return fmt.Errorf("%s: --where selects rows of CSV files, and this is another format", name)
	}
	switch format {
	case FormatJSON:
		return r.jsonLines(name, in)
	case FormatBigDL:
		return r.bigdl(name, in)
	case FormatSpark:
		return r.spark(name, in)
	case FormatSlurm:
		return r.slurm(name, in)
	}
	return fmt.Errorf("%s: no file can have the format %s", name, format)
}

// Finish schedules the runs without timestamps, rejects copies, sets the job IDs, and returns all
// runs, oldest first.
func (r *Reader) Finish() ReadResult {
	r.layOut()
	r.rejectCopies()
	r.rejectFuture()
	seen := map[string]int{}
	for _, run := range r.runs {
		if run.kept != nil {
			continue
		}
		start := run.StartedAt
		if run.timeless {
			run.StartedAt = time.Time{} // the ID does not depend on Options.Since
		}
		content := run.content()
		run.name(seen[content])
		seen[content]++
		run.StartedAt = start
	}
	slices.SortStableFunc(r.runs, func(a, b *PastRun) int {
		return a.StartedAt.Compare(b.StartedAt)
	})
	return ReadResult{
		Read:    r.read,
		LeftOut: r.left,
		LaidOut: r.laidOut,
		Columns: r.columns,
		Unused:  r.unused,
		Runs:    r.runs,
		Refused: r.refused,

		Unreadable: r.unreadable,
	}
}

// refuse records a rejected run.
func (r *Reader) refuse(at Place, why *Refusal) {
	why.Place = at
	r.refused = append(r.refused, why)
}

// layOut schedules runs without timestamps sequentially, so that they are not co-located.
func (r *Reader) layOut() {
	next := r.o.Since
	latest := r.latestSince()
	r.filter(func(run *PastRun) *Refusal {
		if !run.timeless {
			return nil
		}
		if r.o.Since.IsZero() {
			return refuse(ReasonMissing, FieldStartedAt,
				"missing in the source: give --since, such as --since %s, to schedule such runs"+
					" sequentially", latest)
		}
		run.StartedAt = next
		next = run.EndedAt().Add(time.Second)
		r.laidOut++
		return nil
	})
}

// latestSince returns the last date from which the runs without timestamps end before Options.Now.
func (r *Reader) latestSince() string {
	end := cmp.Or(r.o.Now, time.Date(2020, time.October, 31, 0, 0, 0, 0, time.UTC))
	for _, run := range r.runs {
		if run.timeless {
			end = end.Add(-duration(run.Seconds) - time.Second)
		}
	}
	return end.UTC().AddDate(0, 0, -1).Format(time.DateOnly) // whatever the zone of the date
}

// rejectFuture rejects runs that end in the future.
func (r *Reader) rejectFuture() {
	latest := r.latestSince()
	r.filter(func(run *PastRun) *Refusal {
		if r.o.Now.IsZero() || !run.EndedAt().After(r.o.Now) {
			return nil
		}
		end := run.EndedAt().UTC().Format(time.RFC3339)
		if run.timeless {
			return refuse(ReasonFuture, "since",
				"the run would end at %s, in the future: --since %s would do", end, latest)
		}
		return refuse(ReasonFuture, FieldEndedAt, "%s is in the future", end)
	})
}

// filter removes the runs that check rejects.
func (r *Reader) filter(check func(*PastRun) *Refusal) {
	kept := r.runs[:0:0]
	for _, run := range r.runs {
		if refusal := check(run); refusal != nil {
			r.refuse(run.Place, refusal)
			continue
		}
		kept = append(kept, run)
	}
	r.runs = kept
}

// runDraft holds the unparsed values of a run.
type runDraft struct {
	Place
	values map[string]string // by field
	called map[string]string // field to its name in the source, for error messages
	epochs []PastEpoch
	broken *Refusal // set if the run is invalid
	nodes  []string // nodes of the run; empty: from FieldNodes

	named     string  // text for Options.Names; empty: the name of the file
	limit     float64 // time limit of the batch system in seconds; 0: none
	isTimeout bool    // the batch system ended the run at its limit
}

// value returns a field from the source, the file name or the defaults.
func (r *Reader) value(d *runDraft, field string) string {
	if v := strings.TrimSpace(d.values[field]); v != "" {
		return v
	}
	if r.o.Names != nil {
		if m := r.o.Names.FindStringSubmatch(cmp.Or(d.named, path.Base(d.File))); m != nil {
			if i := r.o.Names.SubexpIndex(field); i > 0 && m[i] != "" {
				return m[i]
			}
		}
	}
	return strings.TrimSpace(r.o.Defaults[field])
}

// addRun adds the run of a draft, or records its rejection.
func (r *Reader) addRun(d *runDraft) {
	r.read++
	run, why := r.build(d)
	if why != nil {
		why.Field = callField(d.called, why.Field)
		r.refuse(d.Place, why)
		return
	}
	r.runs = append(r.runs, run)
}

// nodeOf returns the node of runs without one. Each source has its own, so that runs of different
// sources are never co-located.
func nodeOf(file string) string {
	base := path.Base(file)
	return schemas.NodeName(strings.TrimSuffix(base, path.Ext(base)))
}
