package advisor

import (
	"time"

	"courier/schemas"
)

// jobState is a job in a snapshot, with everything that is known of it.
type jobState struct {
	ID           string             `json:"id"`
	State        schemas.State      `json:"state"`
	Submitted    *schemas.Submitted `json:"submitted,omitempty"`
	Setting      schemas.Setting    `json:"setting,omitzero"`
	Run          uint32             `json:"run,omitempty"`
	Hardware     []schemas.Hardware `json:"hardware,omitempty"`
	User         string             `json:"user,omitempty"`
	StartedAt    time.Time          `json:"started_at,omitzero"`
	EndedAt      time.Time          `json:"ended_at,omitzero"`
	EpochsDone   uint32             `json:"epochs_done,omitempty"`
	LongestEpoch time.Duration      `json:"longest_epoch,omitempty"`
	Accuracy     *float64           `json:"accuracy,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	MetSLO       *bool              `json:"met_slo,omitempty"`
	Risk         *schemas.Risk      `json:"risk,omitempty"`

	// The promise and the last advice are often the answer to the request.
	Promise         *schemas.Advice `json:"promise,omitempty"`
	PromiseIsAnswer bool            `json:"promise_is_answer,omitempty"`
	Advice          *schemas.Advice `json:"advice,omitempty"`
	AdviceIsAnswer  bool            `json:"advice_is_answer,omitempty"`
	AdviceIsPromise bool            `json:"advice_is_promise,omitempty"`

	Began      uint32        `json:"began,omitempty"`
	Changed    bool          `json:"changed,omitempty"`
	Laps       []lapState    `json:"laps,omitempty"`
	Mark       []tallyState  `json:"mark,omitempty"`
	ProgressAt time.Time     `json:"progress_at,omitzero"`
	IOWait     float64       `json:"io_wait,omitempty"`
	Usage      schemas.Usage `json:"usage,omitzero"`
	EpochAt    time.Time     `json:"epoch_at,omitzero"`
	Behind     time.Duration `json:"behind,omitempty"`

	First       uint64    `json:"first"`
	Last        uint64    `json:"last"`
	Heard       time.Time `json:"heard,omitzero"`
	Heartbeat   bool      `json:"heartbeat,omitempty"`
	Filed       uint64    `json:"filed,omitempty"`
	Due         uint64    `json:"due,omitempty"`
	CountedLost bool      `json:"counted_lost,omitempty"`
}

// lapState is a lap in a snapshot.
type lapState struct {
	Batch   uint32           `json:"batch"`
	Seconds float64          `json:"seconds"`
	Load    schemas.Load     `json:"load"`
	On      schemas.Hardware `json:"on,omitzero"`
	Node    string           `json:"node"`
}

// state returns the job as a snapshot has it.
func (j *Job) state() *jobState {
	s := &jobState{
		ID:           j.ID,
		State:        j.State,
		Submitted:    j.Submitted,
		Setting:      j.Setting,
		Run:          j.Run,
		Hardware:     j.Hardware,
		User:         j.User,
		StartedAt:    j.StartedAt,
		EndedAt:      j.EndedAt,
		EpochsDone:   j.EpochsDone,
		LongestEpoch: j.LongestEpoch,
		Accuracy:     j.Accuracy,
		Reason:       j.Reason,
		MetSLO:       j.MetSLO,
		Risk:         j.Risk,
		Began:        j.began,
		Changed:      j.changed,
		ProgressAt:   j.progressAt,
		IOWait:       j.ioWait,
		Usage:        j.usage,
		EpochAt:      j.epochAt,
		Behind:       j.behind,
		First:        j.first,
		Last:         j.last,
		Heard:        j.heard,
		Heartbeat:    j.heartbeat,
		Filed:        j.filed,
		Due:          j.due,
		CountedLost:  j.countedLost,
	}
	for _, l := range j.laps {
		s.Laps = append(s.Laps, lapState{l.batch, l.seconds, l.load.Load, l.load.on, l.node})
	}
	for i := range j.mark {
		s.Mark = append(s.Mark, j.mark[i].state())
	}
	s.setAdvice(j)
	return s
}

// setAdvice notes each advice once.
func (s *jobState) setAdvice(j *Job) {
	isAnswer := func(a *schemas.Advice) bool {
		return a != nil && j.Submitted != nil && a == &j.Submitted.Advice
	}
	if s.PromiseIsAnswer = isAnswer(j.Promise); !s.PromiseIsAnswer {
		s.Promise = j.Promise
	}
	switch {
	case isAnswer(j.Advice):
		s.AdviceIsAnswer = true
	case j.Advice != nil && j.Advice == j.Promise:
		s.AdviceIsPromise = true
	default:
		s.Advice = j.Advice
	}
}

// job returns the job that a snapshot has.
func (s *jobState) job() *Job {
	j := &Job{
		ID:           s.ID,
		State:        knownState(string(s.State)),
		Submitted:    s.Submitted,
		Promise:      s.Promise,
		Setting:      s.Setting,
		Run:          s.Run,
		Hardware:     s.Hardware,
		User:         s.User,
		StartedAt:    s.StartedAt,
		EndedAt:      s.EndedAt,
		EpochsDone:   s.EpochsDone,
		LongestEpoch: s.LongestEpoch,
		Accuracy:     s.Accuracy,
		Reason:       s.Reason,
		Advice:       s.Advice,
		MetSLO:       s.MetSLO,
		Risk:         s.Risk,
		began:        s.Began,
		changed:      s.Changed,
		progressAt:   s.ProgressAt,
		ioWait:       s.IOWait,
		usage:        s.Usage,
		epochAt:      s.EpochAt,
		behind:       s.Behind,
		first:        s.First,
		last:         s.Last,
		heard:        s.Heard,
		heartbeat:    s.Heartbeat,
		filed:        s.Filed,
		due:          s.Due,
		countedLost:  s.CountedLost,
	}
	for _, l := range s.Laps {
		j.laps = append(j.laps, lap{l.Batch, l.Seconds, surroundings{l.Load, l.On}, l.Node})
	}
	for i := range s.Mark {
		j.mark = append(j.mark, s.Mark[i].tally())
	}
	if s.Submitted != nil && s.PromiseIsAnswer {
		j.Promise = &s.Submitted.Advice
	}
	switch {
	case s.Submitted != nil && s.AdviceIsAnswer:
		j.Advice = &s.Submitted.Advice
	case s.AdviceIsPromise:
		j.Advice = j.Promise
	}
	return j
}
