package sharing

import "math"

const (
	tick         = 0.05 // seconds
	qualityRatio = 0.9
)

// TrainingJob is a training on the node. Its loss after a part x of its work is
// FinalLoss + (1 - FinalLoss) exp(-x / Decay).
type TrainingJob struct {
	Name      string
	Arrival   float64 // seconds
	Work      float64 // seconds on the whole node
	FinalLoss float64
	Decay     float64
}

type sharingJob struct {
	*TrainingJob
	// qualityWork is the work after which qualityRatio of the fall of the loss is reached; +Inf from
	// then on.
	qualityWork float64

	done     float64 // seconds of work
	share    float64 // of the node
	used     float64 // CPU seconds in the window
	lossSum  float64 // loss times seconds in the window
	since    float64 // begin of the window
	windows  int     // complete windows
	last     float64 // mean loss of the last window
	previous float64 // mean loss of the window before
	seconds  float64 // duration of the last window
	cpuRatio float64 // in the last window
}

func newSharingJob(j *TrainingJob, now float64) *sharingJob {
	fall := 1 - math.Exp(-1/j.Decay)
	work := -math.Log(1-qualityRatio*fall) * j.Decay * j.Work
	return &sharingJob{TrainingJob: j, qualityWork: work, since: now}
}

func (j *sharingJob) loss() float64 {
	return j.FinalLoss + (1-j.FinalLoss)*math.Exp(-j.done/j.Work/j.Decay)
}

// closeWindow ends the window at an instant, if it is not empty.
func (j *sharingJob) closeWindow(now float64) {
	if seconds := now - j.since; seconds > tick {
		j.previous, j.last = j.last, j.lossSum/seconds
		j.seconds, j.cpuRatio = seconds, j.used/seconds
		j.windows++
		j.since, j.lossSum, j.used = now, 0, 0
	}
}
