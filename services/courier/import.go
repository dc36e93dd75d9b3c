package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/importer"
)

// importCommand brings past runs into the log.
type importCommand struct {
	natsFlags
	outputFlags
	Paths  []string `arg:"" help:"Files, or directories of MLflow or of a rolling Spark event log."`
	Format string   `help:"auto: by each file's name and begin; csv: a row per run or epoch; json: a line per run or event; bigdl: a driver's log; spark: an event log; mlflow: a file store." enum:"auto,csv,json,bigdl,spark,mlflow" default:"auto"`
	DryRun bool     `help:"Say what would be imported, and change nothing."`
	Train  bool     `help:"Let the regressors learn from the runs at once." default:"true" negatable:""`

	Columns         map[string]string `help:"Names of fields in the source where they are not found by themselves, such as batch_size=bs,cpus=workers; for MLflow of parameters and metrics, for Spark of properties." placeholder:"FIELD=NAME" mapsep:","`
	Where           map[string]string `help:"Only rows whose column has this value, such as time_suspect=0; repeatable." mapsep:"none" placeholder:"COLUMN=VALUE"`
	NamePattern     string            `help:"Read fields from files' names, such as 'cpu(?P<cpus>\\d+)-batch(?P<batch_size>\\d+)'." placeholder:"REGEXP"`
	Model           string            `help:"What was trained, where the source does not say."`
	Dataset         string            `help:"Name of the training data, where the source does not say."`
	BatchSize       uint32            `help:"Samples in one iteration, where the source does not say." placeholder:"N"`
	CPUs            uint32            `name:"cpus" help:"Processes of the job, where the source does not say." placeholder:"N"`
	Epochs          uint32            `help:"Epochs of a run, where the source does not say. A finished run with fewer is refused." placeholder:"N"`
	TrainingSamples uint64            `help:"Samples in one epoch, where the source does not say." placeholder:"N"`
	Node            string            `help:"Where the runs were, where the source does not say (default: the source's own name, so that runs of two sources are never neighbours)."`
	NodeCores       uint32            `help:"Logical processors of that node." placeholder:"N"`
	Since           string            `help:"When the first run began, where the source does not say when: runs are laid one after another from there, and concurrent_jobs makes neighbours." placeholder:"DATE"`
	TimeZone        string            `help:"Of times without one, such as Europe/Amsterdam." default:"UTC"`
}

// Help is what courier import -h says below its first line.
func (c *importCommand) Help() string { return importHelp }

const importHelp = `Each run becomes a job with the times that it had. The same file twice adds nothing.

Fields are ` + importFields + `. Known names, such as batch, njobs, network or time_s, are found by themselves; --columns names others. Instants are RFC 3339, a date
with or without a time of day, or seconds or milliseconds since 1970.

A run with only a whole time makes no epochs. Its epoch time is learnt as the time, less startup_seconds where that is known, divided by its epochs: right where
start-up is negligible or not part of the time, too long by its share of an epoch otherwise. Its accuracy is learnt as that after the last epoch.

Runs with times of their own are beside each other where these overlap on a node. Where runs have none, --since lays them one after another, and concurrent_jobs says
how many equal jobs ran beside each.

JSON lines are a run each, with these fields and the lists epoch_seconds, accuracies and losses (a value per epoch), or an event of Courier each, as courier replay
--save writes them. BigDL: a driver's log is a run; its batch size is in it, --epochs says how many it must have. MLflow: a metric with a value per epoch (a time, an
accuracy or a loss) tells the epochs. Spark: an application is a run; its epochs are jobs whose group or description says "epoch 3"; where none does, give --epochs
for the whole time, or import the driver's log.

Refused are runs that lie: fewer epochs than promised, the time of another run of this import to the last digit, times that are not positive, an end before the start
or in the future, logs that two jobs wrote into.`

const importFields = "run_id, model, dataset, batch_size, cpus, epochs, duration_seconds, startup_seconds, started_at, ended_at, accuracy, concurrent_jobs, nodes, node_cores, training_samples, user, outcome; of a row per epoch, epoch, epoch_seconds, accuracy and loss"

func (c *importCommand) Run(w *world) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	found, err := c.read(o)
	if err != nil {
		return err
	}
	s := newImportSummary(&found, c.DryRun)
	if err := c.publish(w, found.Runs, s); err != nil {
		return fmt.Errorf("%w; %d of %d runs are in the log: run the same again, nothing is added twice", err, s.Imported+s.There, len(found.Runs))
	}
	if err := s.print(w.stdout, c.Output); err != nil {
		return err
	}
	if s.Imported+s.There == 0 {
		return errors.New("nothing was imported")
	}
	return nil
}

// options checks the flags.
func (c *importCommand) options() (o importer.Options, err error) {
	o = importer.Options{Columns: c.Columns, Where: c.Where, Now: time.Now(), Defaults: map[string]string{
		importer.FieldModel: c.Model, importer.FieldDataset: c.Dataset, importer.FieldNodes: c.Node,
	}}
	for field, n := range map[string]uint64{importer.FieldBatchSize: uint64(c.BatchSize), importer.FieldCPUs: uint64(c.CPUs), importer.FieldEpochs: uint64(c.Epochs), importer.FieldTrainingSamples: c.TrainingSamples, importer.FieldNodeCores: uint64(c.NodeCores)} {
		if n > 0 {
			o.Defaults[field] = strconv.FormatUint(n, 10)
		}
	}
	for field := range c.Columns {
		if !slices.Contains(importer.Fields(), field) {
			return o, fmt.Errorf("--columns: %q is not a field; want FIELD=NAME, such as batch_size=bs, with a field of %s", field, strings.Join(importer.Fields(), ", "))
		}
	}
	if o.Zone, err = time.LoadLocation(c.TimeZone); err != nil {
		return o, fmt.Errorf("--time-zone: %w; want a name such as UTC or Europe/Amsterdam", err)
	}
	if c.Since != "" {
		if o.Since, err = importer.Instant(c.Since, o.Zone); err != nil {
			return o, fmt.Errorf("--since: %w", err)
		}
	}
	if c.NamePattern != "" {
		if o.Names, err = regexp.Compile(c.NamePattern); err != nil {
			return o, fmt.Errorf("--name-pattern: %w", err)
		}
		for _, group := range o.Names.SubexpNames()[1:] {
			if group != "" && !slices.Contains(importer.Fields(), group) {
				return o, fmt.Errorf("--name-pattern: the group %q is not a field; want one of %s", group, strings.Join(importer.Fields(), ", "))
			}
		}
	}
	return o, nil
}

// read reads every source.
func (c *importCommand) read(o importer.Options) (importer.ReadResult, error) {
	r := importer.New(o)
	for _, path := range c.Paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			err = c.readDirectory(r, path)
		} else if err == nil {
			err = c.readFile(r, path)
		}
		if err != nil {
			return importer.ReadResult{}, err
		}
	}
	return r.Finish(), nil
}

func (c *importCommand) readDirectory(r *importer.Reader, path string) error {
	if c.Format != importer.FormatAuto && c.Format != importer.FormatMLflow && c.Format != importer.FormatSpark {
		return fmt.Errorf("%s is a directory: name its files, or --format mlflow or spark", path)
	}
	return r.Directory(c.Format, filepath.ToSlash(path), os.DirFS(path))
}

func (c *importCommand) readFile(r *importer.Reader, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // only read
	in := bufio.NewReaderSize(file, 64<<10)
	format := c.Format
	if format == importer.FormatAuto {
		begin, err := in.Peek(64 << 10)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if format = importer.Detect(path, begin); format == "" {
			return fmt.Errorf("%s is of no known format: name it with --format", path)
		}
	}
	return r.File(format, filepath.ToSlash(path), in)
}

// importSummary is what courier import --output json prints.
type importSummary struct {
	DryRun   bool                `json:"dry_run,omitempty"` // imported is what would be
	Read     int                 `json:"read"`              // runs met in the sources
	Imported int                 `json:"imported"`
	Events   int                 `json:"events"` // published for them
	There    int                 `json:"already_there"`
	Refused  int                 `json:"refused"`
	LeftOut  int                 `json:"left_out,omitempty"` // rows that --where left out
	LaidOut  int                 `json:"laid_out,omitempty"` // runs whose times follow --since
	Columns  map[string]string   `json:"columns,omitempty"`  // field to the column that it was read from
	Reasons  []importReason      `json:"reasons"`            // of the refusals, the most frequent first
	Refusals []*importer.Refusal `json:"refusals"`           // every one
	Trained  []string            `json:"trained,omitempty"`  // what the regressors learnt
}

// importReason counts a reason.
type importReason struct {
	Reason string `json:"reason"`
	Runs   int    `json:"runs"`
}

func newImportSummary(found *importer.ReadResult, dry bool) *importSummary {
	s := &importSummary{DryRun: dry, Read: found.Read, Refused: len(found.Refused), LeftOut: found.LeftOut, LaidOut: found.LaidOut, Columns: found.Columns, Reasons: []importReason{}, Refusals: append([]*importer.Refusal{}, found.Refused...)}
	for _, f := range found.Refused {
		i := slices.IndexFunc(s.Reasons, func(r importReason) bool { return r.Reason == f.Reason })
		if i < 0 {
			i, s.Reasons = len(s.Reasons), append(s.Reasons, importReason{Reason: f.Reason})
		}
		s.Reasons[i].Runs++
	}
	slices.SortStableFunc(s.Reasons, func(a, b importReason) int { return cmp.Compare(b.Runs, a.Runs) })
	return s
}

// shownRefusals are printed for people; all are in the JSON.
const shownRefusals = 20

func (s *importSummary) print(out io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	if len(s.Columns) > 0 {
		var pairs []string
		for _, field := range importer.Fields() {
			if name := s.Columns[field]; name != "" {
				pairs = append(pairs, field+"="+name)
			}
		}
		fmt.Fprintf(out, "columns   %s\n", strings.Join(pairs, ","))
	}
	fmt.Fprintf(out, "read      %d runs", s.Read)
	if s.LeftOut > 0 {
		fmt.Fprintf(out, "; %d rows left out by --where", s.LeftOut)
	}
	if s.LaidOut > 0 {
		fmt.Fprintf(out, "; %d without times of their own, laid one after another", s.LaidOut)
	}
	verb := map[bool]string{true: "would be imported", false: "imported"}[s.DryRun]
	fmt.Fprintf(out, "\n%s  %d runs, %d events\nthere     %d runs already\nrefused   %d runs\n", verb, s.Imported, s.Events, s.There, s.Refused)
	for _, r := range s.Reasons {
		fmt.Fprintf(out, "%8d  %s\n", r.Runs, r.Reason)
	}
	for i, f := range s.Refusals {
		if i == shownRefusals {
			fmt.Fprintf(out, "… and %d more: --output json lists all\n", len(s.Refusals)-i)
			break
		}
		fmt.Fprintln(out, f)
	}
	for _, line := range s.Trained {
		fmt.Fprintf(out, "%s\n", line)
	}
	return nil
}
