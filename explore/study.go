package explore

import "time"

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

// allMeasured is the reason of a study that has no further run.
func (s *Study) allMeasured(design string) string {
	if len(s.failed) > 0 {
		design = "the combinations that did not fail"
	}
	return "every run of " + design + " was measured"
}
