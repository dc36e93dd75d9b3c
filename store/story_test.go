package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

// testLog builds a log: a list of events that are one second apart.
type testLog struct {
	events []schemas.Event
	at     time.Time
}

// newTestLog starts an hour ago, at a full minute, because the TTL of samples is relative to now.
func newTestLog() *testLog {
	return &testLog{at: time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)}
}

func pointer[T any](v T) *T { return &v }

func (s *testLog) stamp(id string) schemas.Stamp {
	s.at = s.at.Add(time.Second + 7*time.Nanosecond)
	return schemas.Stamp{EventID: id, At: s.at}
}

func (s *testLog) jobStamp(id, job string, run uint32) schemas.JobStamp {
	return schemas.JobStamp{Stamp: s.stamp(id), JobID: job, Run: run}
}

func (s *testLog) add(e schemas.Event) { s.events = append(s.events, e) }

func setting(batch uint32) schemas.Setting {
	return schemas.Setting{
		Model: "digits-mlp", Dataset: "digits", BatchSize: batch, CPUs: 2, Epochs: 3,
		TrainingSamples: 1438, Nodes: []string{"node-a", "node-b"},
	}
}

func (s *testLog) submitted(job string, slo time.Duration) {
	alternatives := []schemas.Alternative{
		{
			BatchSize:         64,
			CPUs:              2,
			Epochs:            3,
			PredictedSeconds:  pointer(4.5),
			PredictedAccuracy: pointer(0.9),
			Probability:       pointer(0.97),
			Reason:            "chosen",
		},
		{
			BatchSize:         16,
			CPUs:              2,
			Epochs:            3,
			PredictedSeconds:  pointer(9.5),
			PredictedAccuracy: pointer(0.95),
			Reason:            "too slow",
		},
		{BatchSize: 8, CPUs: 2, Epochs: 3, Reason: "unknown"},
	}
	stamp := s.jobStamp(job+"/0/submitted", job, 0)
	s.add(&schemas.Submitted{JobStamp: stamp,
		Request: schemas.JobRequest{
			JobID:      job,
			Model:      "digits-mlp",
			Dataset:    "digits",
			CPUs:       schemas.CPUs{1, 2},
			BatchSizes: []int{64, 16, 8},
			Epochs:     3,
			SLO:        schemas.Duration(slo),
			Confidence: 0.95,
			User:       "ada",
			Labels:     map[string]string{"team": "vision"},
		},
		Advice: schemas.Advice{
			JobStamp:     stamp,
			Decision:     schemas.MeetsSLO,
			Action:       schemas.ActionStart,
			Message:      "run it",
			Model:        "digits-mlp",
			Nodes:        []string{"node-a"},
			SLOSeconds:   slo.Seconds(),
			Confidence:   0.95,
			Chosen:       &alternatives[0],
			Alternatives: alternatives,
		}})
}

func (s *testLog) started(job string, run uint32) {
	s.add(&schemas.Started{
		JobStamp:                      s.jobStamp(schemas.StartedID(job, run), job, run),
		Setting:                       setting(64),
		NodeCores:                     2,
		HeartbeatSeconds:              10,
		Command:                       "courier",
		User:                          "ada",
		Moves:                         []string{schemas.MoveBatchSize},
		NodesCores:                    []uint32{2, 4},
		NodesCPUModel:                 []string{"x", ""},
		NodesSpeedOperationsPerSecond: []float64{1.5e9, 0},
	})
}

func (s *testLog) epoch(job string, run, n uint32) {
	e := &schemas.Epoch{
		JobStamp:        s.jobStamp(schemas.EpochID(job, run, n), job, run),
		Setting:         setting(64),
		Epoch:           n,
		DurationSeconds: 1.5,
		DurationSource:  schemas.DurationReported,
		NodeCores:       2,
		Accuracy:        pointer(0.5 + float64(n)/10),
		ConcurrentJobs:  pointer(1.25),
	}
	if n%2 == 1 {
		e.Loss, e.NodeCPURatio, e.JobCPUSeconds = pointer(0.7), pointer(0.875), pointer(2.5)
	}
	s.add(e)
}

func (s *testLog) ended(job string, run uint32, outcome string) {
	e := &schemas.Ended{
		JobStamp:        s.jobStamp(schemas.EndedID(job, run, outcome), job, run),
		Outcome:         outcome,
		DurationSeconds: 5,
		StartupSeconds:  pointer(0.25),
		EpochsDone:      3,
		Accuracy:        pointer(0.8),
		Setting:         setting(64),
	}
	switch outcome {
	case schemas.EventFinished:
		e.ExitCode = pointer(int32(0))
	case schemas.EventLost:
		e.EventID, e.Reason, e.Setting = schemas.LostID(job,
			uint64(len(s.events))), "no sign of life for 30 s", schemas.Setting{
			Model: "digits-mlp",
		}
	}
	s.add(e)
}

// incomplete ends the first run of a job successfully after a number of epochs.
func (s *testLog) incomplete(job string, epochsDone uint32) {
	s.ended(job, 1, schemas.EventFinished)
	s.events[len(s.events)-1].(*schemas.Ended).EpochsDone = epochsDone
}

func (s *testLog) advice(job string, cause uint64) {
	chosen := schemas.Alternative{
		BatchSize:         64,
		CPUs:              2,
		Epochs:            2,
		PredictedSeconds:  pointer(3.25),
		UpperBoundSeconds: pointer(4.0),
		Probability:       pointer(0.5),
	}
	s.add(&schemas.Advice{
		JobStamp:       s.jobStamp(schemas.AdviceID(job, cause), job, 1),
		CauseSequence:  cause,
		Decision:       schemas.BestEffort,
		Action:         schemas.ActionKeep,
		Message:        "keep on",
		Model:          "digits-mlp",
		Dataset:        "digits",
		Nodes:          []string{"node-a"},
		SLOSeconds:     10,
		ElapsedSeconds: 2.5,
		Confidence:     0.95,
		EpochsDone:     1,
		Load:           schemas.Load{ConcurrentJobs: 2, Processes: 4},
		Chosen:         &chosen,
		Alternatives: []schemas.Alternative{
			chosen,
			{BatchSize: 128, CPUs: 2, Epochs: 2, Reason: "was never measured"},
		},
		Regressors: map[string]string{"epoch_time": "abc"},
	})
}

func (s *testLog) risk(job string, cause uint64) {
	s.add(&schemas.Risk{
		JobStamp:         s.jobStamp(schemas.RiskID(job, cause), job, 1),
		CauseSequence:    cause,
		Cause:            schemas.CauseNeighbours,
		Probability:      0.25,
		Confidence:       0.95,
		PredictedSeconds: 12,
		LeftSeconds:      9.5,
		Action:           string(schemas.ActionBatch),
		BatchSize:        64,
		SavedProbability: pointer(0.97),
		Message:          "it is getting late",
	})
}

// moved adds a successful change to batch size 32.
func (s *testLog) moved(job string, cause uint64) {
	for n, outcome := range []string{schemas.MoveCarriedOut, schemas.MoveKept} {
		e := &schemas.Moved{
			JobStamp:              s.jobStamp(schemas.MovedID(job, 1, uint32(n+1)), job, 1),
			CauseSequence:         cause,
			Move:                  schemas.MoveBatchSize,
			Outcome:               outcome,
			Means:                 schemas.ByControl,
			FromBatchSize:         64,
			ToBatchSize:           128,
			Epoch:                 2,
			PredictedSeconds:      pointer(2.5),
			PredictedEpochSeconds: pointer(1.25),
			UnmovedEpochSeconds:   pointer(2.25),
			BeforeEpochSeconds:    pointer(2.0),
			AfterEpochSeconds:     pointer(1.25 + float64(n)/8),
			EpochsMeasured:        uint32(2*n + 1),
			GainRatio:             pointer(1 - float64(n)/8),
		}
		s.add(e)
	}
}

// sample adds a sample whose ratios are multiples of 1/64, so that their sums are exact.
func (s *testLog) sample(node string, number uint64) {
	e := &schemas.Sample{
		Stamp:            s.stamp(schemas.SampleID(node, "boot", number)),
		Node:             node,
		BootID:           "boot",
		Number:           number,
		IntervalSeconds:  2,
		Cores:            2,
		CPURatio:         pointer(float64(number%64) / 64),
		LoadAverage:      pointer(float64(number%8) / 4),
		MemoryTotalBytes: pointer(8e9),
	}
	if number%3 != 0 {
		e.IOWaitRatio, e.CPUModel, e.SpeedOperationsPerSecond = pointer(float64(number%16)/64), "x", pointer(1.5e9)
	}
	s.add(e)
}

func (s *testLog) regressors() {
	s.add(&schemas.Promoted{
		Stamp:    s.stamp(schemas.PromotedID("epoch_time", 1)),
		Target:   "epoch_time",
		Revision: 1,
		Fitted: schemas.Fitted{
			ModelDigest:    "abc",
			ManifestDigest: "def",
			Examples:       40,
			Configurations: 8,
			HeldOutError:   0.125,
			FitSeconds:     0.5,
		},
		Grounds: schemas.Grounds{Reason: "first", DecidedBy: schemas.DecidedFirst},
	})
	s.add(&schemas.Rejected{
		Stamp:       s.stamp(schemas.RejectedID("accuracy", "ghi")),
		Target:      "accuracy",
		ModelDigest: "ghi",
		Reason:      "bad regressor file",
	})
	at := time.Unix(1_790_000_000, 0).UTC()
	s.add(&schemas.Drift{
		Stamp:         s.stamp(schemas.DriftID("epoch_time", 7, "scope")),
		Target:        "epoch_time",
		CauseSequence: 7,
		ModelDigest:   "abc",
		State:         schemas.DriftActive,
		Scope:         schemas.DriftNodeType,
		NodeType:      "x, 2 cores",
		SinceAt:       at,
		Ratio:         1.25,
		BeforeRatio:   1,
		Jobs:          4,
		Statistic:     17,
		Message:       "jobs on nodes of type x, 2 cores take 1.25 times as long as predicted",
	})
}

// job adds all events of a job, from its submission to its end.
func (s *testLog) job(job string, slo time.Duration, outcome string) {
	s.submitted(job, slo)
	s.started(job, 1)
	for n := uint32(1); n <= 3; n++ {
		s.epoch(job, 1, n)
		s.advice(job, uint64(len(s.events)))
	}
	s.risk(job, uint64(len(s.events)))
	s.moved(job, uint64(len(s.events)))
	s.ended(job, 1, outcome)
}

func stream(e schemas.Event) string {
	switch e.(type) {
	case *schemas.Sample:
		return schemas.StreamNode
	case *schemas.Trained, *schemas.Promoted, *schemas.Rejected, *schemas.Drift:
		return schemas.StreamRegressor
	case *schemas.Advice:
		return schemas.StreamAdvice
	}
	return schemas.StreamJob
}

// batch returns a batch of events of one stream that begins at a sequence. JOB may contain advice,
// as in the logs of old releases.
func batch(name string, first uint64, events ...schemas.Event) bus.Batch {
	b := bus.Batch{Stream: name, First: first}
	for i, e := range events {
		_, advice := e.(*schemas.Advice)
		if stream(e) != name && !(advice && name == schemas.StreamJob) {
			panic(fmt.Sprintf("%T is not of stream %s", e, name))
		}
		b.Last = first + uint64(i)
		e.(interface{ SetSequence(uint64) }).SetSequence(b.Last)
		b.Records = append(b.Records,
			bus.Record{Event: e, Subject: e.Subject(), Sequence: b.Last, StoredAt: time.Unix(0, int64(b.Last))})
	}
	b.Token = fmt.Sprintf("%s/%d-%d", name, b.First, b.Last)
	return b
}

func TestStory_IsValid(t *testing.T) {
	s := newTestLog()
	s.job("a", time.Minute, schemas.EventFinished)
	s.ended("a", 1, schemas.EventLost)
	s.sample("node-a", 1)
	s.regressors()
	jobs, samples, regressors := twoWeeks()
	for _, e := range slices.Concat(s.events, jobs, samples, regressors) {
		if err := e.Validate(); err != nil {
			t.Errorf("%T: %v", e, err)
		}
	}
}

// corrections adds the events of a correction that ends with a fit.
func (s *testLog) corrections() {
	at := time.Unix(1_790_000_000, 0).UTC()
	e := schemas.Drift{
		Stamp: s.stamp(schemas.DriftID("epoch_time", 2, "a")), Target: "epoch_time", CauseSequence: 9,
		ModelDigest: "abc", Scope: schemas.DriftModel, Model: "resnet", NodeType: "V100", BatchSizeFrom: 512,
		SinceAt: at, Ratio: 1.5, RatioLow: pointer(1.375), RatioHigh: pointer(1.625), BeforeRatio: 1, Jobs: 2,
		Statistic: 9, State: schemas.DriftActive,
		Message: "jobs of model resnet with batch size 512 or more take 1.50 times as long",
	}
	s.add(&e)
	over := e
	over.Stamp, over.State = s.stamp(schemas.DriftID("epoch_time", 3, "a")), schemas.DriftReplaced
	over.Ratio, over.BeforeRatio, over.RatioLow, over.RatioHigh = 1, 1.5, nil, nil
	s.add(&over)
}
