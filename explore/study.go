package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"courier/schemas"
)

// Options of a study. Zero fields mean the documented defaults.
type Options struct {
	Model          string // name of the model
	Dataset        string // name of the dataset; empty: unnamed
	Command        []string
	Factors        Factors
	Design         string // default DesignAdaptive, or DesignFull without SLOs
	Epochs         int    // of each run
	Replications   int    // of each cell; the design adaptive needs fewer; default 3
	Runs           int    // cells of DesignDOptimal in each replication; 0: half more than effects
	Seed           uint64 // of the random order; default 1
	Cores          int    // of the node
	SLOs           []time.Duration
	Confidence     float64       // of a promise; default schemas.DefaultConfidence
	TargetAccuracy float64       // 0: none
	MinGain        float64       // DesignAdaptive ends below this expected accuracy; default 0.002
	Budget         time.Duration // no block starts that would end after it; 0: none
}

// defaultMinGain is the expected gain of accuracy below which a measurement is not worth its time.
const defaultMinGain = 0.002

// withDefaults returns the options with defaults for empty fields.
func (o Options) withDefaults() Options {
	if o.Design == "" {
		o.Design = DesignAdaptive
		if len(o.SLOs) == 0 {
			o.Design = DesignFull
		}
	}
	o.Replications = cmp.Or(o.Replications, 3)
	o.Seed = cmp.Or(o.Seed, 1)
	o.Cores = max(1, o.Cores)
	o.Confidence = cmp.Or(o.Confidence, schemas.DefaultConfidence)
	o.MinGain = cmp.Or(o.MinGain, defaultMinGain)
	f := &o.Factors
	for _, list := range []*[]int{&f.BatchSizes, &f.CPUs, &f.GPUs, &f.Jobs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if len(f.CPUs) == 0 {
		f.CPUs = []int{1}
	}
	if len(f.GPUs) == 0 {
		f.GPUs = []int{0}
	}
	if len(f.Jobs) == 0 {
		f.Jobs = []int{1}
	}
	return o
}

// validate checks the options.
func (o *Options) validate() error {
	for _, list := range []struct {
		flag   string
		levels []int
		least  int
		most   int
	}{
		{"--batch-sizes", o.Factors.BatchSizes, 1, schemas.MaxBatchSize},
		{"--cpus", o.Factors.CPUs, 1, schemas.MaxCPUs},
		{"--gpus", o.Factors.GPUs, 0, schemas.MaxCPUs},
		{"--jobs", o.Factors.Jobs, 1, maxJobs},
	} {
		if len(list.levels) == 0 {
			return fmt.Errorf("%s is missing: give the levels to measure, for example 32,64,128",
				list.flag)
		}
		for _, level := range list.levels {
			if level < list.least || level > list.most {
				return fmt.Errorf("%s: %d is not between %d and %d",
					list.flag, level, list.least, list.most)
			}
		}
	}
	if n := len(o.Factors.Cells()); n > maxCells {
		return fmt.Errorf("%d combinations of levels, want at most %d", n, maxCells)
	}
	if o.Epochs < 1 || o.Epochs > schemas.MaxEpochs {
		return fmt.Errorf("--epochs: %d is not between 1 and %d", o.Epochs, schemas.MaxEpochs)
	}
	if o.Replications < 1 || o.Replications > maxReplications {
		return fmt.Errorf("--replications: %d is not between 1 and %d",
			o.Replications, maxReplications)
	}
	if !slices.Contains(Designs(), o.Design) {
		return fmt.Errorf("--design: %q is not one of %v", o.Design, Designs())
	}
	if o.Design == DesignAdaptive && len(o.SLOs) == 0 {
		return errors.New("--design adaptive needs at least one --slo: it measures what decides")
	}
	return nil
}

// Bounds of a study.
const (
	maxJobs         = 256
	maxCells        = 10_000
	maxReplications = 1000
)

// storedDesign is the part of the options that must not change when a study is continued.
type storedDesign struct {
	Model        string   `json:"model"`
	Dataset      string   `json:"dataset,omitempty"`
	Command      []string `json:"command"`
	Factors      Factors  `json:"factors"`
	Design       string   `json:"design"`
	Epochs       int      `json:"epochs"`
	Replications int      `json:"replications"`
	Runs         int      `json:"runs,omitempty"`
	Seed         uint64   `json:"seed"`
}

func (o *Options) stored() storedDesign {
	return storedDesign{
		Model:        o.Model,
		Dataset:      o.Dataset,
		Command:      o.Command,
		Factors:      o.Factors,
		Design:       o.Design,
		Epochs:       o.Epochs,
		Replications: o.Replications,
		Runs:         o.Runs,
		Seed:         o.Seed,
	}
}

// Study is a study with the runs that were measured. It is not safe for concurrent use.
type Study struct {
	o       Options
	dir     string
	blocks  []Block // of the design, in order
	records []MeasuredRun
	done    map[string]int // finished runs of each block
	failed  map[Cell]bool  // combinations that failed in this process, which are not repeated
	spent   time.Duration  // of all blocks
}

// Open opens the study in a directory, which is created if it does not exist. If it has a study with
// the same design, that continues; another design is an error.
func Open(dir string, o Options) (*Study, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	blocks, err := o.blocksOf()
	if err != nil {
		return nil, err
	}
	s := &Study{o: o, dir: dir, blocks: blocks, done: map[string]int{}, failed: map[Cell]bool{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := s.checkDesign(); err != nil {
		return nil, err
	}
	return s, s.read()
}

// Blocks returns the number of blocks of the design, and how many of them are done.
func (s *Study) Blocks() (total, done int) {
	for _, b := range s.blocks {
		if s.isDone(b) {
			done++
		}
	}
	return len(s.blocks), done
}

// isDone reports whether all jobs of a block were measured. Failed combinations are measured again
// when the study is continued.
func (s *Study) isDone(b Block) bool { return s.failed[b.Cell] || s.done[b.ID()] >= b.Jobs }

// add adds a measured run. A failed run is kept in the file only.
func (s *Study) add(r MeasuredRun) {
	if r.Job == 1 {
		s.spent += time.Duration(r.TotalSeconds * float64(time.Second))
	}
	if r.Status == StatusFailed {
		return
	}
	s.records = append(s.records, r)
	s.done[r.Block.ID()]++
}

// Progress is the state of a study before a block.
type Progress struct {
	Next    Block
	Done    int           // blocks
	Total   int           // blocks of the design; the design adaptive may need fewer
	Left    time.Duration // predicted for the rest of the design; 0: unknown
	MinGain float64       // of DesignAdaptive: expected gain at which it ends
	Gain    float64       // of DesignAdaptive: expected gain of Next; 0 for a first run
}

// ErrInterrupted is returned by Run if its context ends.
var ErrInterrupted = errors.New("the study was interrupted")

// maxFirstFailures is the number of failed combinations without any success at which the command is
// taken for broken.
const maxFirstFailures = 3

// Run measures the blocks of the design that are left. measure runs the jobs of one block, which
// start together. report is called before each block and may be nil. If ctx ends, the error wraps
// ErrInterrupted, and the finished runs are kept. A combination that fails is left out; it is an
// error if the first ones all fail.
func (s *Study) Run(
	ctx context.Context,
	measure func(context.Context, Block) ([]MeasuredRun, error),
	report func(Progress),
) (*Findings, error) {
	for {
		fitted, err := s.fit(ctx)
		if err != nil {
			return nil, errors.Join(ErrInterrupted, err)
		}
		next, gain, reason := s.next(fitted)
		if reason != "" {
			return s.result(fitted, reason), nil
		}
		total, done := s.Blocks()
		progress := Progress{
			Next: next, Done: done, Total: total, Left: s.left(fitted), Gain: gain, MinGain: s.o.MinGain,
		}
		if t := fitted.seconds(next.Cell); s.o.Budget > 0 && s.spent+t > s.o.Budget {
			return s.result(fitted, fmt.Sprintf("the budget of %s is used up", s.o.Budget)), nil
		}
		if report != nil {
			report(progress)
		}
		records, err := measure(ctx, next)
		if ctx.Err() != nil {
			return nil, errors.Join(ErrInterrupted, ctx.Err())
		}
		if err != nil {
			return nil, err
		}
		if err := s.append(records); err != nil {
			return nil, fmt.Errorf("store the runs: %w", err)
		}
		for _, r := range records {
			s.add(r)
			if r.Status == StatusFailed {
				s.failed[next.Cell] = true
			}
		}
		if len(s.records) == 0 && len(s.failed) >= min(maxFirstFailures, s.combinations()) {
			return nil, fmt.Errorf("the first runs failed: see %s", filepath.Join(s.dir, "logs"))
		}
	}
}

// combinations returns the number of combinations of the design.
func (s *Study) combinations() int {
	all := map[Cell]bool{}
	for _, b := range s.blocks {
		all[b.Cell] = true
	}
	return len(all)
}

// Advice returns the advice of the runs so far.
func (s *Study) Advice(ctx context.Context) (*Findings, error) {
	f, err := s.fit(ctx)
	if err != nil {
		return nil, err
	}
	return s.result(f, "so far"), nil
}

// next returns the next block, or why there is none.
func (s *Study) next(f *fitted) (b Block, gain float64, reason string) {
	if s.o.Design == DesignAdaptive {
		return s.mostValuable(f)
	}
	for _, b := range s.blocks {
		if !s.isDone(b) {
			return b, 0, ""
		}
	}
	return Block{}, 0, s.allMeasured("the design")
}

// allMeasured is the reason of a study that has no further run.
func (s *Study) allMeasured(design string) string {
	if len(s.failed) > 0 {
		design = "the combinations that did not fail"
	}
	return "every run of " + design + " was measured"
}

// left predicts the time of the blocks that are left; 0 if it is unknown.
func (s *Study) left(f *fitted) time.Duration {
	var left time.Duration
	for _, b := range s.blocks {
		if s.isDone(b) {
			continue
		}
		t := f.seconds(b.Cell)
		if t == 0 {
			return 0
		}
		left += t
	}
	return left
}
