package cluster

import (
	"encoding/json"
	"time"

	"courier/schemas"
)

// Limits of the ended jobs in memory, and of those that were submitted and have not started. Queued and
// running jobs are never dropped, nor a job that has just been admitted.
const (
	// maxEndedJobs bounds the ended jobs that job.status and job.list return: ten days with
	// 10,000 jobs per day. The job that ended first is dropped first.
	maxEndedJobs = 100_000
	// maxUnpackedJobs bounds the ended jobs that are not packed. A lost job comes back within
	// minutes, if at all.
	maxUnpackedJobs = 1024
	// maxLabelBytes bounds the labels of a packed job, which keeps all or none.
	maxLabelBytes = 512
	// maxReasonBytes bounds the reason of the end of a packed job.
	maxReasonBytes = 512
)

// packedJob is an ended job as JSON, with the fields that index it. It never changes: a job that comes
// back is unpacked, and packed again after its end.
type packedJob struct {
	jobKey
	text []byte // JSON of a Job
}

// pack returns the packed form of an ended job, without its progress. A lost job that comes back has
// no observed epochs.
func (j *Job) pack() *packedJob {
	text, err := json.Marshal(j.withoutProgress())
	if err != nil { // a number is not finite; no valid event has one
		text = nil
	}
	return &packedJob{j.jobKey, text}
}

// withoutProgress returns the job with the fields that job.status and job.list return and that a later
// run needs.
func (j *Job) withoutProgress() *Job {
	kept := *j
	if j.Request != nil {
		request := *j.Request
		if labelBytes(request.Labels) > maxLabelBytes {
			request.Labels = nil
		}
		kept.Request = &request
	}
	kept.Answer, kept.Admission = nil, nil
	kept.Reason = j.Reason[:min(len(j.Reason), maxReasonBytes)]
	kept.Risk, kept.Divergence = nil, nil
	if j.Advice != nil && j.Run > 0 {
		kept.Advice = &AdviceSummary{
			Decision: j.Advice.Decision, CauseSequence: j.Advice.CauseSequence,
		}
	}
	kept.Hardware, kept.ObservedEpochs, kept.LoadAtLastEpoch = nil, nil, nil
	kept.Usage, kept.IOWait, kept.Losses = schemas.Usage{}, 0, LossHistory{}
	kept.ProgressAt, kept.LastSeen = time.Time{}, time.Time{}
	kept.Uses, kept.FormerUses, kept.BarredMoves = nil, nil, nil
	return &kept
}

// labelBytes returns the size of labels.
func labelBytes(labels map[string]string) (n int) {
	for name, value := range labels {
		n += len(name) + len(value)
	}
	return n
}

// unpacked returns a job that is part of no list.
func (p *packedJob) unpacked() *Job {
	j := &Job{}
	if json.Unmarshal(p.text, j) != nil {
		j = &Job{}
	}
	j.jobKey, j.EndOrder = p.jobKey, 0
	return j
}
