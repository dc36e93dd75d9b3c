package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/schemas"
)

// playMeans applies jobs to a cluster. Their true probability of meeting the SLO is uniform between
// 0.6 and 1, and their predicted probability exceeds it by excess. It returns the SLO attainment of
// the promises from job begin, and the last threshold.
func playMeans(c *Cluster, begin int, excess float64) (kept, threshold float64) {
	const confidence = 0.9
	r, at := rand.New(rand.NewPCG(1, 2)), time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)
	held, promised := 0, 0
	for i := range 4000 {
		id, truth := fmt.Sprint("job-", i), 0.6+0.4*r.Float64()
		q := schemas.JobRequest{
			JobID:      id,
			Model:      "digits-mlp",
			Confidence: confidence,
			SLO:        schemas.Duration(10 * time.Second),
			Promise:    schemas.PromiseMean,
		}
		said := min(1, truth+excess)
		threshold = c.MeanThreshold(&q)
		decision := schemas.BestEffort
		if said >= threshold {
			decision = schemas.MeetsSLO
		}
		in := r.Float64() < truth
		if decision == schemas.MeetsSLO && i >= begin {
			if promised++; in {
				held++
			}
		}
		setting := schemas.Setting{
			Model:     "digits-mlp",
			BatchSize: 16,
			CPUs:      2,
			Epochs:    3,
			Nodes:     []string{"node-a"},
		}
		stamp := func(run uint32, seconds float64) schemas.JobStamp {
			return schemas.JobStamp{
				Stamp: schemas.Stamp{At: at.Add(time.Duration(seconds * float64(time.Second)))},
				JobID: id,
				Run:   run,
			}
		}
		took := 12.0
		if in {
			took = 8
		}
		chosen := schemas.Alternative{BatchSize: 16, CPUs: 2, Epochs: 3, Probability: &said}
		for _, e := range []schemas.Event{
			&schemas.Submitted{
				JobStamp: stamp(0, 0),
				Request:  q,
				Advice: schemas.Advice{
					Decision:   decision,
					Confidence: confidence,
					Threshold:  threshold,
					Chosen:     &chosen,
				},
			},
			&schemas.Started{JobStamp: stamp(1, 1), Setting: setting},
			&schemas.Ended{
				JobStamp:   stamp(1, took),
				Setting:    setting,
				Outcome:    schemas.EventFinished,
				EpochsDone: 3,
			},
		} {
			c.Apply(e, uint64(i), at.Add(time.Minute))
			c.Apply(e, uint64(i), at.Add(time.Minute)) // a duplicate has no effect
		}
	}
	return float64(held) / float64(promised), threshold
}

// The mean SLO attainment equals the confidence, with accurate and with too high probabilities, and
// more jobs get a promise than with PromiseEach.
func TestMeanThresholds_KeepTheConfidenceOnAverage(t *testing.T) {
	for _, excess := range []float64{0, 0.05} {
		kept, threshold := playMeans(New(), 1000, excess)
		if math.Abs(kept-0.9) > 0.015 {
			t.Errorf("probabilities too high by %g: got SLO attainment %.3f, want 0.9", excess, kept)
		}
		// Probabilities that are uniform between 0.8 and 1 have the mean 0.9.
		if want := 0.8 + excess; math.Abs(threshold-want) > 0.07 {
			t.Errorf("probabilities too high by %g: got threshold %.3f, want about %.2f", excess, threshold, want)
		}
	}
}

func TestMeanThresholds_ApplyOnlyToRequestsForAMean(t *testing.T) {
	c := New()
	playMeans(c, 0, 0)
	for _, q := range []schemas.JobRequest{
		{Confidence: 0.9, SLO: schemas.Duration(time.Second)},
		{Confidence: 0.9, SLO: schemas.Duration(time.Second), Promise: schemas.PromiseEach},
		{Confidence: 0.9, Promise: schemas.PromiseMean}, // without an SLO
	} {
		if got := c.MeanThreshold(&q); got != 0 {
			t.Errorf("request %+v: got threshold %g, want its confidence", q, got)
		}
	}
	other := c.MeanThreshold(&schemas.JobRequest{
		Confidence: 0.8,
		SLO:        schemas.Duration(time.Second),
		Promise:    schemas.PromiseMean,
	})
	if other != 0.8 {
		t.Errorf("first threshold of another confidence: got %g, want 0.8", other)
	}
}

// Arbitrarily many confidences need bounded memory.
func TestMeanThresholds_AreBounded(t *testing.T) {
	m, p := meanThresholds{}, 0.99
	for i := range 2 * maxMeanThresholds {
		confidence := 0.5 + float64(i)/1000
		m.addPromise(&Job{
			Promise: &AdviceSummary{
				Decision:    schemas.MeetsSLO,
				Confidence:  confidence,
				Threshold:   confidence,
				Probability: &p,
			},
		})
	}
	if len(m) != maxMeanThresholds {
		t.Errorf("got %d confidences in memory, want %d", len(m), maxMeanThresholds)
	}
}
