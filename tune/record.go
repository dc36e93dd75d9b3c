package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// recordFile is the record of a tuning: a JSON object per line. The first line is the design.
const recordFile = "tuning.jsonl"

// Kinds of lines in the record.
const (
	kindDesign = "design"
	kindOpen   = "open"  // a process continues the tuning
	kindStart  = "start" // of a segment
	kindEpoch  = "epoch" // of a segment
	kindEnd    = "end"   // of a segment
	kindPlan   = "plan"  // the resources of the stages from here on
)

// recordLine is a line of the record.
type recordLine struct {
	Kind    string      `json:"kind"`
	Elapsed float64     `json:"elapsed"` // seconds of the tuning, without interruptions
	Design  *Options    `json:"design,omitempty"`
	Segment *Segment    `json:"segment,omitempty"` // of a start
	ID      int         `json:"id,omitempty"`      // segment of an epoch or an end
	Epoch   *TrialEpoch `json:"epoch,omitempty"`
	Ending  *Ending     `json:"ending,omitempty"`
	Stages  []StagePlan `json:"stages,omitempty"`
	Exceeds bool        `json:"exceeds,omitempty"` // the plan does not keep the bound
}

// Segment is a run of a trial's command, from a number of completed epochs to the target of a stage.
type Segment struct {
	ID      int  `json:"id"`    // from 1, in the order of the starts
	Trial   int  `json:"trial"` // from 1
	Stage   int  `json:"stage"` // from 0
	CPUs    int  `json:"cpus"`
	From    int  `json:"from"`               // completed epochs
	Epochs  int  `json:"epochs"`             // to reach
	IsProbe bool `json:"is_probe,omitempty"` // it only measures the time of an epoch
}

// TrialEpoch is an epoch as the command reported it. Nil figures were not reported.
type TrialEpoch struct {
	Number   int      `json:"number"` // from 1
	Seconds  float64  `json:"seconds"`
	Loss     *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
}

// Ending is how a segment ended.
type Ending struct {
	Outcome string  `json:"outcome"`          // OutcomeDone, OutcomeFailed or OutcomeStopped
	Reason  string  `json:"reason,omitempty"` // of a failure
	Seconds float64 `json:"seconds"`          // from the start of the command to its end

	// HasStartInEpoch reports that the time of the first epoch includes the start of the command.
	HasStartInEpoch bool `json:"has_start_in_epoch,omitempty"`
}

// Outcomes of a segment.
const (
	OutcomeDone    = "done"
	OutcomeFailed  = "failed"
	OutcomeStopped = "stopped" // at the end of the time, or interrupted
)

// validate checks what the fold of the record relies on.
func (l *recordLine) validate() error {
	switch {
	case l.Elapsed < 0:
		return errors.New("negative time")
	case l.Kind == kindStart && l.Segment == nil, l.Kind == kindEpoch && l.Epoch == nil,
		l.Kind == kindEnd && l.Ending == nil:
		return fmt.Errorf("%s without its fields", l.Kind)
	case l.Kind == kindEpoch && (l.Epoch.Number < 1 || l.Epoch.Seconds < 0):
		return errors.New("epoch without a number or with a negative time")
	}
	return nil
}

// parseRecord parses a record. An unfinished last line, as of a crash, is not counted in size.
func parseRecord(data []byte) (lines []recordLine, size int, err error) {
	for number := 1; ; number++ {
		end := bytes.IndexByte(data[size:], '\n')
		if end < 0 {
			return lines, size, nil
		}
		var l recordLine
		err := json.Unmarshal(data[size:size+end], &l)
		if err == nil {
			err = l.validate()
		}
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		lines, size = append(lines, l), size+end+1
	}
}

// record is an open record. Every line is on disk before append returns.
type record struct{ file *os.File }

// openRecord opens the record in a directory and returns its lines. It creates the directory and a
// record with the design if there is none. Another design is an error.
func openRecord(dir string, design Options) (*record, []recordLine, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, recordFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	lines, size, err := parseRecord(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkDesign(dir, lines, design); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	r := &record{file}
	err = file.Truncate(int64(size))
	if err == nil {
		_, err = file.Seek(int64(size), 0)
	}
	if err == nil && len(lines) == 0 {
		lines = []recordLine{{Kind: kindDesign, Design: &design}}
		err = r.append(&lines[0])
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return r, lines, nil
}

// checkDesign compares the design with that of the record.
func checkDesign(dir string, lines []recordLine, design Options) error {
	if len(lines) == 0 {
		return nil
	}
	before := lines[0].Design
	if lines[0].Kind != kindDesign || before == nil {
		return fmt.Errorf("%s: the first line is not the design of a tuning", filepath.Join(dir, recordFile))
	}
	old, err := json.Marshal(before)
	if err != nil {
		return err
	}
	now, err := json.Marshal(design)
	if err == nil && !bytes.Equal(old, now) {
		err = fmt.Errorf("%s has a tuning with another design: repeat its flags to continue it, or choose another "+
			"--dir; its design is %s", dir, old)
	}
	return err
}

// append writes a line to disk.
func (r *record) append(l *recordLine) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(text, '\n')); err != nil {
		return err
	}
	return r.file.Sync()
}

// StagePlan is the planned resources of a stage.
type StagePlan struct {
	Stage       int     `json:"stage"` // from 0
	Trials      int     `json:"trials"`
	CPUs        int     `json:"cpus"`    // of each trial
	Seconds     float64 `json:"seconds"` // predicted for the whole stage; 0: unknown
	CoreSeconds float64 `json:"core_seconds"`
}
