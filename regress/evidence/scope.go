package evidence

import "time"

// Scope is a set of configurations whose times jump together. Empty fields match everything.
type Scope struct {
	Kind     string `json:"kind"` // one of the Scope constants
	Model    string `json:"model,omitempty"`
	Dataset  string `json:"dataset,omitempty"`
	NodeType string `json:"node_type,omitempty"`
	// BatchSize from which or up to which a range holds.
	BatchSize int `json:"batch_size,omitempty"`
}

// The kinds of scopes.
const (
	ScopeAll       = "all"
	ScopeNode      = "node_type"
	ScopeModel     = "model"
	ScopeModelNode = "model_on_node_type"
	ScopeFrom      = "batch_size_from"
	ScopeTo        = "batch_size_to"
)

// Covers reports whether a configuration belongs to the scope.
func (s *Scope) Covers(c *Configuration) bool {
	if s.Kind == ScopeAll {
		return true
	}
	if s.Kind == ScopeNode {
		return c.NodeType == s.NodeType
	}
	if c.Model != s.Model || c.Dataset != s.Dataset {
		return false
	}
	switch s.Kind {
	case ScopeModelNode:
		return c.NodeType == s.NodeType
	case ScopeFrom:
		return c.BatchSize >= s.BatchSize
	case ScopeTo:
		return c.BatchSize <= s.BatchSize
	}
	return true
}

// penalty is subtracted from the evidence for a scope. Of two scopes that explain the same runs,
// the wider one is then selected.
func (s *Scope) penalty() float64 {
	switch s.Kind {
	case ScopeAll:
		return 0
	case ScopeNode, ScopeModel:
		return 0.2
	case ScopeModelNode:
		return 0.3
	}
	return 0.4
}

// Factor is a jump of the times of a scope.
type Factor struct {
	Scope
	// Ratio of measured to predicted seconds since the jump, and its 95 % interval.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	// Since is the end of the first run after the jump, and StartedAt its begin.
	Since     time.Time `json:"since,omitzero"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Runs in scope that ended since then.
	Runs int `json:"runs"`
	// Evidence is the sum of the residuals in standard deviations.
	Evidence float64 `json:"evidence"`

	start int // index of the first residual after the jump
}

// scopesOf lists the scopes of the residuals.
func scopesOf(residuals []Residual) []Scope {
	seen := map[Scope]bool{}
	var all []Scope
	add := func(s Scope) {
		if !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	add(Scope{Kind: ScopeAll})
	for i := range residuals {
		c := &residuals[i].Configuration
		add(Scope{Kind: ScopeNode, NodeType: c.NodeType})
		s := Scope{Kind: ScopeModel, Model: c.Model, Dataset: c.Dataset}
		add(s)
		on := s
		on.Kind, on.NodeType = ScopeModelNode, c.NodeType
		add(on)
		s.BatchSize = c.BatchSize
		s.Kind = ScopeFrom
		add(s)
		s.Kind = ScopeTo
		add(s)
	}
	return all
}
