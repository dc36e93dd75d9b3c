package collector

import (
	"time"

	"courier/schemas"
)

// finished is an epoch of this run with a duration.
type finished struct {
	number   uint32 // from 1
	seconds  float64
	source   string // schemas.DurationReported or schemas.DurationArrival
	loss     *float64
	accuracy *float64
	samples  uint64 // that the accuracy is of; 0: it does not say
	batch    uint32 // batch size that it says it ran with; 0: it does not
}

// epochs is what is known of a run's epochs: a fold over reports.
type epochs struct {
	started time.Time // of the command; carries the monotonic clock
	shift   uint32    // 1 for a job that counts from 0
	last    uint32    // newest epoch
	lastAt  time.Time // when it was reported
	done    uint32    // epochs taken
	refused int       // reports that went back, repeated, or had no duration
	begun   bool      // an epoch was taken or refused for want of a duration
	startup *float64  // seconds from the start to the first epoch's begin; nil if unknown
}

func newEpochs(started time.Time) *epochs { return &epochs{started: started, lastAt: started} }

// add takes the reports that arrived together and returns the epochs that count.
// Numbers that go back or repeat are refused. An epoch without a reported
// duration takes the time since the report before, by the monotonic clock;
// several that arrived together share it, because the job kept them back. The
// first such duration begins with the command and so contains its start-up.
func (e *epochs) add(reports []report) []finished {
	var taken []finished
	before := e.last
	for _, r := range reports {
		if !e.begun {
			before = e.begin(r)
		}
		number := r.epoch + e.shift
		if number <= e.last || number > schemas.MaxEpochs {
			e.refused++
			continue
		}
		e.last = number
		taken = append(taken, finished{number: number, seconds: r.seconds, source: schemas.DurationReported, loss: r.loss, accuracy: r.accuracy, samples: r.samples, batch: r.batch})
	}
	if len(taken) == 0 {
		return nil
	}
	at := reports[len(reports)-1].at
	taken = e.time(taken, at.Sub(e.lastAt).Seconds()/float64(e.last-before))
	e.lastAt = at
	e.done += uint32(len(taken))
	return taken
}

// begin takes the first report of a run: where its count begins, which a run
// that goes on from a checkpoint does late, and the start-up time, which is
// known if the epoch reports its duration. It returns the epoch before.
func (e *epochs) begin(r report) uint32 {
	e.begun = true
	if r.epoch == 0 {
		e.shift = 1
	}
	e.last = r.epoch + e.shift - 1
	if r.seconds > 0 {
		startup := max(0, r.at.Sub(e.started).Seconds()-r.seconds)
		e.startup = &startup
	}
	return e.last
}

// time gives a duration to the epochs that report none, and refuses what has
// no duration even so.
func (e *epochs) time(taken []finished, arrival float64) []finished {
	timed := taken[:0]
	for _, f := range taken {
		if f.seconds == 0 {
			f.seconds, f.source = reportedSeconds(arrival), schemas.DurationArrival
		}
		if f.seconds == 0 {
			e.refused++
			continue
		}
		timed = append(timed, f)
	}
	return timed
}
