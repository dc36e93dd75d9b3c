package store_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// fortnight is a deterministic log of two weeks. Three users train three networks on three
// nodes. Twice a day two jobs share a node, and resnet20 makes its neighbours wait for the disks.
// From 10 March at noon node-c is slow; that is detected on the 11th, and learned on the 12th.
// The last job stops reporting.
type fortnight struct {
	testLog
	begin  time.Time
	lastID string // of the job before, which lends CPUs to some
}

const (
	slowHour    = 8*24 + 12 // hours after the start: node-c becomes slow (Tuesday noon)
	learnedHour = 10*24 + 9 // hours after the start: a regressor with that knowledge is promoted
	slowness    = 1.4       // duration on the slow node, relative to before
)

// trainedNetwork describes an epoch of a model with batch size 64, alone on a fast node.
type trainedNetwork struct {
	model, dataset, user string
	seconds              float64
}

var networks = []trainedNetwork{
	{"lenet5", "mnist", "ada", 64}, {"digits-mlp", "digits", "bob", 24}, {"resnet20", "cifar10", "carl", 128},
}

// settings by batch size: duration of an epoch relative to 64, and final accuracy.
var settings = map[uint32][2]float64{16: {1.625, 0.9375}, 64: {1, 0.90625}, 256: {0.75, 0.84375}}

type plan struct {
	trainedNetwork
	id, node   string
	hour       int // of its request, since the start of the fortnight
	number     int
	batch      uint32
	neighbour  string // model that shares its node for its first three epochs; "": none
	outcome    string // empty: no events after two epochs
	reason     string
	predicted  float64 // seconds
	slo        float64
	odds       float64
	best       bool // best effort: no promise
	waitsQueue bool
}

// twoWeeks builds the logs of jobs, regressors and samples.
func twoWeeks() (jobs, samples, regressors []schemas.Event) {
	f := &fortnight{begin: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)}
	for day := range 14 {
		for slot, hour := range []int{8, 10, 12, 14, 16, 18} {
			shared := hour == 12 || hour == 16
			first, second := (day+slot)%3, (day+slot+1)%3
			if hour == 16 {
				first, second = 0, 1
			}
			node := fmt.Sprintf("node-%c", 'a'+hash(8*day+slot)%3)
			a, b := f.plan(first, day, hour, node), f.plan(second, day, hour, node)
			if shared {
				a.neighbour, b.neighbour = networks[second].model, networks[first].model
				b.promise()
			}
			a.promise()
			f.addJob(a)
			if shared {
				f.addJob(b)
			}
		}
	}
	jobs, f.events = f.inOrder(), nil
	for i := range 14 * 24 * 6 {
		for n, node := range []string{"node-a", "node-b", "node-c"} {
			f.sample(node, n, i)
		}
	}
	samples, f.events = f.events, nil
	f.regressors()
	return jobs, samples, f.events
}

// hash returns a pseudo-random number for n.
func hash(n int) int { return int(uint32(n+1) * 2654435761 >> 20) }

// inOrder returns the events in the order of their timestamps.
func (f *fortnight) inOrder() []schemas.Event {
	slices.SortStableFunc(f.events, func(a, b schemas.Event) int { return a.Stamped().At.Compare(b.Stamped().At) })
	return f.events
}

func (f *fortnight) plan(network, day, hour int, node string) *plan {
	n := networks[network]
	p := &plan{
		trainedNetwork: n,
		node:           node,
		hour:           24*day + hour,
		number:         8*day + hour/2,
		outcome:        schemas.EventFinished,
		waitsQueue:     hour == 18,
	}
	p.id = fmt.Sprintf("%s-%s", n.model, f.begin.Add(time.Duration(p.hour)*time.Hour).Format("0102-15"))
	p.batch = []uint32{16, 64, 256}[hash(100*p.number+network)%3]
	switch p.hour {
	case 4*24 + 14:
		p.outcome, p.reason = schemas.EventFailed, "exit status 137: out of memory"
	case 5*24 + 10:
		p.outcome, p.reason = schemas.EventLost, "no sign of life for 30 s"
	case 9*24 + 8:
		p.outcome, p.reason = schemas.EventCancelled, "cancelled by ada"
	case 13*24 + 18:
		p.outcome = ""
	}
	return p
}

// promise sets the advice for a request with five epochs and a start time of 4 s.
func (p *plan) promise() {
	seconds := p.seconds * settings[p.batch][0]
	if p.node == "node-c" && p.hour >= learnedHour {
		seconds *= slowness
	}
	known := 0.0
	if p.neighbour != "" {
		known = 0.25 // typical interference of a neighbour; that of resnet20 is higher
	}
	p.predicted = 4 + seconds*(5+3*known)
	p.slo = float64(int(p.predicted*1.2/10)+1) * 10
	p.odds = []float64{0.95, 0.96, 0.97, 0.98, 0.99}[p.number%5]
	if p.waitsQueue {
		p.slo += 180
	}
	if p.hour%24 == 10 && hash(p.number)%3 == 1 { // an infeasible request
		p.best, p.odds, p.slo = true, 0.5, float64(int(p.predicted/10))*10
	}
}

// epochSeconds is the true duration of an epoch.
func (p *plan) epochSeconds(n uint32, hour int) (seconds, neighbours, ioWait float64) {
	seconds, ioWait = p.seconds*settings[p.batch][0], 0.03125
	if p.model == "resnet20" {
		ioWait = 0.125
	}
	if n <= 3 && p.neighbour != "" {
		neighbours = 1
		seconds *= 1.25
		if p.neighbour == "resnet20" {
			seconds, ioWait = seconds*1.5, 0.375
		}
	}
	if p.node == "node-c" && hour >= slowHour {
		seconds *= slowness
	}
	return seconds * (1 + float64((p.number*7+int(n)*3)%5-2)/64), neighbours, ioWait
}

// loans returns the loans with which a job is admitted: every fifth job borrows a CPU.
func (f *fortnight) loans(p *plan) []schemas.Loan {
	if p.number%5 != 0 || f.lastID == "" {
		return nil
	}
	return []schemas.Loan{{JobID: f.lastID, FromCPUs: 2, ToCPUs: 1}}
}

func (f *fortnight) addJob(p *plan) {
	defer func() { f.lastID = p.id }()
	at := f.begin.Add(time.Duration(p.hour) * time.Hour)
	requested := at
	stamp := func(id string) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: p.id, Run: 1}
	}
	f.submit(p, at)
	if p.waitsQueue {
		at = at.Add(time.Duration(1+hash(p.number)%8) * 30 * time.Second)
		e := f.advise(p, stamp(schemas.AdmittedID(p.id)), p.batch, 5, p.predicted)
		e.Action, e.ElapsedSeconds, e.Message = schemas.ActionStart, at.Sub(requested).Seconds(), "start now"
		e.Admission = &schemas.Admission{
			Policy: "queue", Verdict: schemas.Admitted, Loans: f.loans(p),
		}
	}
	at = at.Add(time.Duration(1+p.number%3) * time.Second)
	s := schemas.Setting{
		Model: p.model, Dataset: p.dataset, BatchSize: p.batch, CPUs: 2, Epochs: 5,
		TrainingSamples: 50_000, Nodes: []string{p.node},
	}
	f.add(&schemas.Started{
		JobStamp:         stamp(schemas.StartedID(p.id, 1)),
		Setting:          s,
		NodeCores:        4,
		HeartbeatSeconds: 10,
		Command:          "python",
		User:             p.user,
		Moves:            []string{schemas.MoveBatchSize},
	})
	started := at
	at = at.Add(2 * time.Second)
	done := uint32(0)
	for n := uint32(1); n <= 5; n++ {
		if done = n - 1; p.outcome != schemas.EventFinished && n == 3 {
			break
		}
		done = n
		seconds, neighbours, ioWait := p.epochSeconds(n, p.hour)
		seconds *= settings[s.BatchSize][0] / settings[p.batch][0]
		at = at.Add(time.Duration(seconds * 1e9))
		accuracy := settings[s.BatchSize][1] * (1 - 1/float64(int(2)<<n))
		f.add(&schemas.Epoch{
			JobStamp:          stamp(schemas.EpochID(p.id, 1, n)),
			Setting:           s,
			Epoch:             n,
			DurationSeconds:   seconds,
			DurationSource:    schemas.DurationReported,
			NodeCores:         4,
			Accuracy:          &accuracy,
			Loss:              pointer(1 / float64(n)),
			ConcurrentJobs:    pointer(1 + neighbours),
			NodeCPURatio:      pointer(0.5 + neighbours/4),
			NodeIOWaitRatio:   &ioWait,
			JobCPUSeconds:     pointer(seconds * 1.5),
			JobMemoryBytes:    pointer(p.seconds * (1 << 24)),
			JobReadBytes:      pointer(p.seconds * (1 << 22)),
			JobWrittenBytes:   pointer(0.0),
			ValidationSamples: 10_000,
		})
		left := p.slo - at.Sub(requested).Seconds()
		if remaining := seconds * float64(5-n); n == 2 && p.outcome == schemas.EventFinished &&
			remaining > left*0.95 {
			s.BatchSize = f.warn(p, stamp, s.BatchSize, seconds, remaining, left)
		}
	}
	if p.outcome == "" {
		return
	}
	at = at.Add(time.Second)
	e := &schemas.Ended{
		JobStamp:        stamp(schemas.EndedID(p.id, 1, p.outcome)),
		Outcome:         p.outcome,
		Reason:          p.reason,
		DurationSeconds: at.Sub(started).Seconds(),
		StartupSeconds:  pointer(2.0),
		EpochsDone:      done,
		Setting:         s,
	}
	f.add(e)
}

func (f *fortnight) alternatives(p *plan, epochs uint32) (all []schemas.Alternative) {
	for _, batch := range []uint32{16, 64, 256} {
		seconds := 4 + (p.predicted-4)*settings[batch][0]/settings[p.batch][0]
		odds, reason := 0.98, "can be promised, but its expected accuracy is lower"
		if seconds*1.1 > p.slo {
			odds, reason = 0.25, "too unlikely to meet the SLO"
		}
		if batch == p.batch {
			odds, reason = p.odds, "the best by probability and expected accuracy of those that can be promised"
		}
		all = append(all, schemas.Alternative{
			BatchSize:         batch,
			CPUs:              2,
			Epochs:            epochs,
			PredictedSeconds:  &seconds,
			PredictedAccuracy: pointer(settings[batch][1]),
			Probability:       &odds,
			Reason:            reason,
		})
	}
	return all
}

func (f *fortnight) decision(p *plan) schemas.Decision {
	if p.best {
		return schemas.BestEffort
	}
	return schemas.MeetsSLO
}

func (f *fortnight) submit(p *plan, at time.Time) {
	stamp := schemas.JobStamp{Stamp: schemas.Stamp{EventID: p.id + "/0/submitted", At: at}, JobID: p.id}
	all := f.alternatives(p, 5)
	advice := schemas.Advice{
		JobStamp:     stamp,
		Decision:     f.decision(p),
		Action:       schemas.ActionStart,
		Message:      "run it",
		Model:        p.model,
		Dataset:      p.dataset,
		Nodes:        []string{p.node},
		SLOSeconds:   p.slo,
		Confidence:   0.95,
		Alternatives: all,
	}
	for i := range all {
		if all[i].BatchSize == p.batch {
			advice.Chosen = &all[i]
		}
	}
	advice.Admission = &schemas.Admission{Policy: "queue", Verdict: schemas.Admitted}
	if p.neighbour != "" {
		advice.Admission.Loans = f.loans(p)
	}
	if p.waitsQueue {
		advice.Admission.Verdict = schemas.Queued
	}
	f.add(&schemas.Submitted{
		JobStamp: stamp,
		Advice:   advice,
		Request: schemas.JobRequest{
			JobID:      p.id,
			Model:      p.model,
			Dataset:    p.dataset,
			CPUs:       schemas.CPUs{2},
			BatchSizes: []int{16, 64, 256},
			Epochs:     5,
			SLO:        schemas.Duration(p.slo * 1e9),
			Confidence: 0.95,
			User:       p.user,
		},
	})
}

func (f *fortnight) advise(p *plan, stamp schemas.JobStamp, batch, epochs uint32, seconds float64) *schemas.Advice {
	chosen := schemas.Alternative{
		BatchSize:         batch,
		CPUs:              2,
		Epochs:            epochs,
		PredictedSeconds:  &seconds,
		UpperBoundSeconds: pointer(seconds * 1.125),
		PredictedAccuracy: pointer(settings[batch][1]),
		Probability:       pointer(p.odds),
	}
	e := &schemas.Advice{
		JobStamp:     stamp,
		Decision:     f.decision(p),
		Action:       schemas.ActionBatch,
		Message:      fmt.Sprintf("change to batch size %d", batch),
		Model:        p.model,
		Dataset:      p.dataset,
		Nodes:        []string{p.node},
		SLOSeconds:   p.slo,
		Confidence:   0.95,
		EpochsDone:   5 - epochs,
		Load:         schemas.Load{ConcurrentJobs: 1, Processes: 2},
		Chosen:       &chosen,
		Alternatives: []schemas.Alternative{chosen},
		Regressors:   map[string]string{schemas.TargetEpochTime: digest("a")},
	}
	f.add(e)
	return e
}

// warn adds the events of an SLO at risk after two epochs, and of the reaction.
func (f *fortnight) warn(
	p *plan, stamp func(string) schemas.JobStamp, batch uint32, seconds, remaining, left float64,
) uint32 {
	cause := schemas.CauseEpochs
	switch {
	case p.neighbour == "resnet20":
		cause = schemas.CauseIOWait
	case p.neighbour != "":
		cause = schemas.CauseNeighbours
	case p.waitsQueue:
		cause = schemas.CauseLate
	}
	cost := uint64(p.number)*10 + 2
	f.add(&schemas.Risk{
		JobStamp:         stamp(schemas.RiskID(p.id, cost)),
		CauseSequence:    cost,
		Cause:            cause,
		Probability:      0.25,
		Confidence:       0.95,
		PredictedSeconds: remaining,
		LeftSeconds:      left,
		Action:           string(schemas.ActionBatch),
		BatchSize:        256,
		SavedProbability: pointer(0.9),
		AccuracyLoss:     pointer(settings[batch][1] - settings[256][1]),
		Message:          "the SLO is at risk",
	})
	if batch == 256 {
		return batch
	}
	f.advise(p, stamp(schemas.AdviceID(p.id, cost)), 256, 3, seconds*3*0.75/settings[batch][0])
	outcome, gain := schemas.MoveKept, 0.9375
	if hash(p.number)%3 == 0 {
		outcome, gain = schemas.MoveRefused, 0
	}
	move := func(n uint32, outcome string) *schemas.Moved {
		e := &schemas.Moved{
			JobStamp:      stamp(schemas.MovedID(p.id, 1, n)),
			CauseSequence: cost,
			Move:          schemas.MoveBatchSize,
			Outcome:       outcome,
			Means:         schemas.ByControl,
			FromBatchSize: batch,
			ToBatchSize:   256,
		}
		f.add(e)
		return e
	}
	if outcome == schemas.MoveRefused {
		move(1, outcome).Reason = "the training does not follow its control file"
		return batch
	}
	for n, outcome := range []string{schemas.MoveCarriedOut, outcome} {
		e := move(uint32(n+1), outcome)
		e.Epoch, e.EpochsMeasured = 3, uint32(1+2*n)
		e.BeforeEpochSeconds, e.UnmovedEpochSeconds, e.PredictedEpochSeconds = &seconds, &seconds, pointer(
			seconds*0.75/settings[batch][0],
		)
		e.AfterEpochSeconds, e.GainRatio = pointer(seconds-(seconds-*e.PredictedEpochSeconds)*gain), &gain
	}
	return 256
}

// sample adds the sample of ten minutes. Nodes are busy in working hours, most of all at noon and
// at four.
func (f *fortnight) sample(node string, n, i int) {
	at := f.begin.Add(time.Duration(i) * 10 * time.Minute)
	busy, wait := 0.0625, 0.015625
	if hour := at.Hour(); hour >= 8 && hour < 19 {
		busy, wait = 0.375+float64((i+n)%4)/16, 0.0625
		if hour == 12 || hour == 16 {
			busy, wait = 0.8125+float64((i+n)%2)/16, 0.25
		}
		if day := at.Weekday(); day == time.Saturday || day == time.Sunday {
			busy -= 0.125
		}
		busy += float64(n) / 32
	}
	number := uint64(i + 1)
	f.add(&schemas.Sample{
		Stamp:                schemas.Stamp{EventID: schemas.SampleID(node, "boot", number), At: at},
		Node:                 node,
		BootID:               "boot",
		Number:               number,
		IntervalSeconds:      600,
		Cores:                4,
		CPURatio:             &busy,
		IOWaitRatio:          &wait,
		LoadAverage:          pointer(busy * 4),
		MemoryTotalBytes:     pointer(16e9),
		MemoryAvailableBytes: pointer(8e9),
	})
}

// digest is a made-up sha256 of a regressor.
func digest(letter string) string { return strings.Repeat(letter, 64) }

// regressors adds the first regressor, the drift of the nodes like node-c, a regressor that advisors
// cannot use, and one that has learned the drift.
func (f *fortnight) regressors() {
	stamp := func(hour int, id string) schemas.Stamp {
		return schemas.Stamp{EventID: id, At: f.begin.Add(time.Duration(hour) * time.Hour)}
	}
	fitted := func(letter string, examples uint64, heldOutError float64) schemas.Fitted {
		return schemas.Fitted{
			ModelDigest:    digest(letter),
			ManifestDigest: digest(letter),
			Examples:       examples,
			Configurations: 12,
			HeldOutError:   heldOutError,
			FitSeconds:     0.25,
		}
	}
	trained := func(hour int, of schemas.Fitted, reason string) {
		f.add(&schemas.Trained{
			Stamp:  stamp(hour, of.ModelDigest[:1]+"/trained"),
			Target: schemas.TargetEpochTime,
			Fitted: of,
			Reason: reason,
		})
	}
	promoted := func(hour int, of schemas.Fitted, revision uint64, by, reason string) {
		f.add(&schemas.Promoted{
			Stamp:    stamp(hour, schemas.PromotedID(schemas.TargetEpochTime, revision)),
			Target:   schemas.TargetEpochTime,
			Revision: revision,
			Fitted:   of,
			Grounds:  schemas.Grounds{Reason: reason, DecidedBy: by},
		})
	}
	first, unusable, last := fitted("a", 120, 0.09375), fitted("b", 240, 0.125), fitted("c", 360, 0.0625)
	trained(-3, first, "the first regressor")
	promoted(-2, first, 1, schemas.DecidedFirst, "the first regressor")
	trained(4*24, unusable, "enough new epochs")
	f.add(&schemas.Rejected{
		Stamp:       stamp(5*24, "b/rejected"),
		Target:      schemas.TargetEpochTime,
		ModelDigest: unusable.ModelDigest,
		Reason:      "bad regressor file",
	})
	since := f.begin.Add(slowHour * time.Hour)
	f.add(&schemas.Drift{
		Stamp:         stamp(9*24+14, schemas.DriftID(schemas.TargetEpochTime, 1, "scope")),
		Target:        schemas.TargetEpochTime,
		CauseSequence: 7,
		ModelDigest:   first.ModelDigest,
		State:         schemas.DriftActive,
		Scope:         schemas.DriftNodeType,
		NodeType:      "x, 2 cores",
		SinceAt:       since,
		Ratio:         1.375,
		RatioLow:      pointer(1.25),
		RatioHigh:     pointer(1.5),
		BeforeRatio:   1,
		Jobs:          4,
		Statistic:     18,
		Message:       "jobs on nodes of type x, 2 cores take 1.375 times as long as predicted",
	})
	trained(9*24+15, last, "a run has ended")
	promoted(learnedHour, last, 2, schemas.DecidedFit, "a run has ended")
	f.add(&schemas.Rejected{
		Stamp:       stamp(12*24, "d/rejected"),
		Target:      schemas.TargetAccuracy,
		ModelDigest: digest("d"),
		Reason:      "bad regressor file",
	})
}
