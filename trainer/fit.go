package trainer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// Fit fits the regressor of a target on the runs of each model. before is the manifest of the
// champion, whose state is updated; nil if there is none.
func Fit(
	ctx context.Context, target string, examples []Example, before *treefile.Manifest, o Options,
) (Files, error) {
	o = o.withDefaults()
	examples = thin(examples, o.Examples)
	examples = withForeignAtStart(target, examples)
	var foreign schemas.ForeignColumns
	isNew := false
	if target == schemas.TargetEpochTime {
		foreign, isNew = chooseForeign(examples, before)
	}
	runs, state := evidenceRuns(target, examples, foreign), stateOf(before)
	if isNew {
		state = nil // its configurations have other columns
	}
	state, err := state.Update(ctx, runs, evidence.Options{
		Threads: o.Threads, SetAside: o.setAside, Memory: o.memory,
	})
	if err != nil {
		return Files{}, err
	}
	if len(state.Subjects) == 0 {
		return Files{}, fmt.Errorf("fit %s: %w: no runs", target, ErrTooFewExamples)
	}
	var scores []evidence.RefitScore
	if !isNew && before != nil {
		adjusted := state.Adjusted(runs)
		if scores, err = state.KeepBetter(stateOf(before), adjusted, before.Examples.Last); err != nil {
			return Files{}, fmt.Errorf("fit %s: %w", target, err)
		}
	}
	files, err := encodeState(manifestOf(target, examples, state, o), runs, foreign, state)
	files.Scores, files.Correction = scores, correctionReason(state)
	return files, err
}

// correctionReason returns the drift that a state is adjusted for; "" if there is none.
func correctionReason(s *evidence.State) string {
	factors := s.Factors()
	if len(factors) == 0 {
		return ""
	}
	strongest := slices.MaxFunc(factors, func(a, b evidence.Factor) int {
		return cmp.Compare(a.Evidence, b.Evidence)
	})
	return "drift: " + describeFactor(&strongest)
}

// stateOf returns the state in a manifest; nil if there is none.
func stateOf(m *treefile.Manifest) *evidence.State {
	var s evidence.State
	if m == nil || json.Unmarshal(m.State, &s) != nil || s.Regressor == nil {
		return nil // an advisor also refuses it; the next fit does not update it
	}
	return &s
}

// jobRun names a run of a job.
func jobRun(job string, run uint32) string { return fmt.Sprintf("%s/%d", job, run) }

// configurationOf returns the features that the predictions of a target depend on. Of the foreign
// loads it includes the loads with a column.
func configurationOf(target string, x *Example, foreign schemas.ForeignColumns) evidence.Configuration {
	c := evidence.Configuration{
		Model: x.Model, Dataset: x.Dataset,
		BatchSize: int(x.Features.BatchSize), CPUs: int(x.Features.CPUs),
	}
	c.NodeType = x.Hardware.NodeType()
	if target == schemas.TargetAccuracy {
		c.CPUs = 1
	}
	if target == schemas.TargetEpochTime {
		c.NodeLoad = evidence.NodeLoad{
			ConcurrentJobs:   x.Features.Load.ConcurrentJobs,
			ProcessesPerCore: x.Features.Load.ProcessesPerCore,
		}
		c.ForeignCPURatio, c.ForeignIOWaitRatio = foreign.Ratios(&x.Features.Load)
	}
	return c.Banded()
}

func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// begin returns the begin of the epoch, run or start-up that the example measures.
func (x *Example) begin() time.Time {
	return x.At.Add(-time.Duration(x.Seconds * float64(time.Second)))
}

// addExample adds an example to its run.
func addExample(target string, r *evidence.Run, x *Example) {
	switch target {
	case schemas.TargetStartup:
		r.StartupSeconds = x.Value
	case schemas.TargetAccuracy:
		r.Epochs = append(r.Epochs, evidence.EpochRecord{
			Number: int(x.Features.EpochsDone), Accuracy: x.Value, HasAccuracy: true,
		})
	default:
		count := max(1, x.Count)
		r.Epochs = append(r.Epochs, evidence.EpochRecord{
			Number:  int(x.Features.EpochsDone),
			Count:   count,
			Seconds: x.Value * float64(count),
		})
	}
}
