package schemas

import "cmp"

// Submitted is job.<id>.submitted: a request and the advice that answered it.
type Submitted struct {
	JobStamp
	// The request with its defaults filled in.
	Request JobRequest `json:"request"`
	// The reply.
	Advice Advice `json:"advice"`
}

// Subject implements Event.
func (e *Submitted) Subject() string { return JobSubject(e.JobID, EventSubmitted) }

// Validate implements Event.
func (e *Submitted) Validate() error {
	return cmp.Or(e.JobStamp.validate(), e.Request.Validate(), e.Advice.Validate())
}

// JobAdmitted is job.<id>.admitted: the admission policy let a queued job start. It is part of the
// cluster state and is stored with the other events of jobs. The same advice is also published as
// job.<id>.advice, with action start.
type JobAdmitted struct {
	JobStamp
	// What to start, and the promise that goes with it.
	Advice Advice `json:"advice"`
}

// NewJobAdmitted returns the event that admits the job of an advice.
func NewJobAdmitted(a *Advice) *JobAdmitted {
	e := &JobAdmitted{JobStamp: a.JobStamp, Advice: *a}
	e.EventID = AdmittedID(a.JobID)
	return e
}

// AdmittedID returns the identity of the event that admits a queued job, and of its advice.
func AdmittedID(job string) string { return job + "/admitted" }

// Subject implements Event.
func (e *JobAdmitted) Subject() string { return JobSubject(e.JobID, EventAdmitted) }

// Validate implements Event.
func (e *JobAdmitted) Validate() error {
	if e.Advice.JobID != e.JobID {
		return Invalid("advice", "is for job %q, want %q", Clip(e.Advice.JobID), Clip(e.JobID))
	}
	return cmp.Or(e.JobStamp.validate(), OneOf("action", e.Advice.Action, ActionStart), e.Advice.Validate())
}
