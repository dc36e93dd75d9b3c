package shares

import (
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// Admit is Pools.Admit for one node.
func (s *Pool) Admit(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	return Pools{s}.Admit(q, r, now)
}

// MakeRoom is Pools.MakeRoom for one node.
func (s *Pool) MakeRoom(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	return Pools{s}.MakeRoom(q, r, now)
}

// CanWait is Pools.CanWait for one node.
func (s *Pool) CanWait(q *decide.Question, r decide.Regressors, before time.Duration, now time.Time) bool {
	return Pools{s}.CanWait(q, r, before, now)
}
