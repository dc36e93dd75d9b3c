package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"courier/schemas"
)

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

// Progress is the state of a study before a block.
type Progress struct {
	Next  Block
	Done  int           // blocks
	Total int           // blocks of the design; the design adaptive may need fewer
	Left  time.Duration // predicted for the rest of the design; 0: unknown
	Gain  float64       // of DesignAdaptive: expected gain of Next; 0 for a first run
}

// Text returns the progress as a line.
func (p *Progress) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d blocks", p.Done, p.Total)
	if p.Left > 0 {
		fmt.Fprintf(&b, ", at most %s left", schemas.FormatSeconds(schemas.CeilSeconds(p.Left.Seconds())))
	}
	fmt.Fprintf(&b, "; batch size %d, %s", p.Next.BatchSize,
		schemas.FormatShape(uint32(p.Next.Workers), uint32(p.Next.CPUs)))
	if p.Next.Jobs > 1 {
		fmt.Fprintf(&b, ", %d jobs at once", p.Next.Jobs)
	}
	if p.Gain > 0 {
		fmt.Fprintf(&b, " (expected gain %.4f, end below %.4g)", p.Gain, minGain)
	}
	return b.String()
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
			Next: next, Done: done, Total: total, Left: s.left(fitted), Gain: gain,
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
		if len(s.records) == 0 && len(s.failed) >= min(maxFirstFailures, len(s.blocks)/s.o.Replications) {
			return nil, fmt.Errorf("the first runs failed: see %s", filepath.Join(s.dir, "logs"))
		}
	}
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
