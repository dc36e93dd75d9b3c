package advisor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"courier/schemas"
)

// jobSnapshot is the complete state of a job in a snapshot.
type jobSnapshot struct {
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
	Divergence   *schemas.Risk      `json:"divergence,omitempty"`

	// The promise and the last advice are often the answer to the request, and stored once.
	Promise         *schemas.Advice `json:"promise,omitempty"`
	PromiseIsAnswer bool            `json:"promise_is_answer,omitempty"`
	Advice          *schemas.Advice `json:"advice,omitempty"`
	AdviceIsAnswer  bool            `json:"advice_is_answer,omitempty"`
	AdviceIsPromise bool            `json:"advice_is_promise,omitempty"`

	Began uint32 `json:"began,omitempty"`

	InitialCPUs uint32 `json:"initial_cpus,omitempty"`
	Elastic     bool   `json:"elastic,omitempty"`

	BarredMoves []barredSnapshot `json:"barred_moves,omitempty"`

	Losses lossSnapshot `json:"losses,omitzero"`
	Uses   []epochUse   `json:"uses,omitempty"`

	FormerUses []epochUse `json:"former_uses,omitempty"`
	GrownFrom  uint32     `json:"grown_from,omitempty"`

	Changed    bool               `json:"changed,omitempty"`
	Laps       []epochSnapshot    `json:"laps,omitempty"`
	Mark       []integralSnapshot `json:"mark,omitempty"`
	ProgressAt time.Time          `json:"progress_at,omitzero"`
	IOWait     float64            `json:"io_wait,omitempty"`
	Usage      schemas.Usage      `json:"usage,omitzero"`
	EpochAt    time.Time          `json:"epoch_at,omitzero"`
	Behind     time.Duration      `json:"behind,omitempty"`

	First       uint64    `json:"first"`
	ListedAt    uint64    `json:"listed_at"`
	Last        uint64    `json:"last"`
	LastSeen    time.Time `json:"heard,omitzero"`
	Heartbeat   bool      `json:"heartbeat,omitempty"`
	Filed       uint64    `json:"filed,omitempty"`
	Due         uint64    `json:"due,omitempty"`
	CountedLost bool      `json:"counted_lost,omitempty"`
}

// barredSnapshot is a barred move in a snapshot.
type barredSnapshot struct {
	CPUs  uint32    `json:"cpus"`
	Until time.Time `json:"until"`
}

// lossSnapshot is the losses of a run in a snapshot.
type lossSnapshot struct {
	IsError bool                 `json:"is_error,omitempty"`
	First   float64              `json:"first"`
	Largest float64              `json:"largest"`
	Reports []lossReportSnapshot `json:"reports"`
}

// lossReportSnapshot is the loss of an epoch in a snapshot.
type lossReportSnapshot struct {
	Loss     float64 `json:"loss"`
	Seconds  float64 `json:"seconds"`
	CPURatio float64 `json:"cpu_ratio"`
	IORate   float64 `json:"io_rate,omitempty"`
	IOWait   float64 `json:"io_wait,omitempty"`
}

func (l *lossHistory) state() (s lossSnapshot) {
	if len(l.reports) == 0 {
		return s
	}
	s = lossSnapshot{IsError: l.isError, First: l.first, Largest: l.largest}
	for _, r := range l.reports {
		s.Reports = append(s.Reports,
			lossReportSnapshot{r.loss, r.seconds, r.cpuRatio, r.ioRate, r.ioWait})
	}
	return s
}

func (s *lossSnapshot) history() lossHistory {
	l := lossHistory{isError: s.IsError, first: s.First, largest: s.Largest}
	for _, r := range s.Reports {
		l.reports = append(l.reports, lossReport{r.Loss, r.Seconds, r.CPURatio, r.IORate, r.IOWait})
	}
	return l
}

// epochSnapshot is an observed epoch in a snapshot.
type epochSnapshot struct {
	Batch   uint32           `json:"batch"`
	CPUs    uint32           `json:"cpus,omitempty"` // 0: those of the job
	Seconds float64          `json:"seconds"`
	Load    schemas.Load     `json:"load"`
	On      schemas.Hardware `json:"on,omitzero"`
	Node    string           `json:"node"`
}

// state returns the job for a snapshot.
func (j *Job) state() *jobSnapshot {
	s := &jobSnapshot{
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
		Divergence:   j.Divergence,
		Losses:       j.losses.state(),
		Uses:         j.uses,
		FormerUses:   j.formerUses,
		GrownFrom:    j.grownFrom,
		Began:        j.initialBatch,
		InitialCPUs:  j.initialCPUs,
		Changed:      j.hasMoved,
		Elastic:      j.isElastic,
		ProgressAt:   j.progressAt,
		IOWait:       j.ioWait,
		Usage:        j.usage,
		EpochAt:      j.epochAt,
		Behind:       j.clockLag,
		First:        j.first,
		ListedAt:     j.listedAt,
		Last:         j.last,
		LastSeen:     j.lastSeen,
		Heartbeat:    j.heartbeat,
		Filed:        j.endOrder,
		Due:          j.expiry,
		CountedLost:  j.countedLost,
	}
	for _, m := range j.barredMoves {
		s.BarredMoves = append(s.BarredMoves, barredSnapshot{m.cpus, m.until})
	}
	for _, l := range j.observedEpochs {
		s.Laps = append(s.Laps,
			epochSnapshot{l.batch, l.cpus, l.seconds, l.load.Load, l.load.on, l.node})
	}
	for i := range j.loadAtLastEpoch {
		s.Mark = append(s.Mark, j.loadAtLastEpoch[i].state())
	}
	s.setAdvice(j)
	return s
}

// setAdvice stores each advice once.
func (s *jobSnapshot) setAdvice(j *Job) {
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

// job returns the job of a snapshot.
func (s *jobSnapshot) job() *Job {
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
		Divergence:   s.Divergence,
		losses:       s.Losses.history(),
		uses:         s.Uses,
		formerUses:   s.FormerUses,
		grownFrom:    s.GrownFrom,
		initialBatch: s.Began,
		initialCPUs:  s.InitialCPUs,
		hasMoved:     s.Changed,
		isElastic:    s.Elastic,
		progressAt:   s.ProgressAt,
		ioWait:       s.IOWait,
		usage:        s.Usage,
		epochAt:      s.EpochAt,
		clockLag:     s.Behind,
		first:        s.First,
		listedAt:     s.ListedAt,
		last:         s.Last,
		lastSeen:     s.LastSeen,
		heartbeat:    s.Heartbeat,
		endOrder:     s.Filed,
		expiry:       s.Due,
		countedLost:  s.CountedLost,
	}
	for _, m := range s.BarredMoves {
		j.barredMoves = append(j.barredMoves, barredMove{m.CPUs, m.Until})
	}
	for _, l := range s.Laps {
		cpus := cmp.Or(l.CPUs, s.Setting.CPUs)
		e := observedEpoch{l.Batch, cpus, l.Seconds, loadOnNode{l.Load, l.On}, l.Node}
		j.observedEpochs = append(j.observedEpochs, e)
	}
	for i := range s.Mark {
		j.loadAtLastEpoch = append(j.loadAtLastEpoch, s.Mark[i].integral())
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

// headSnapshot is the part of the state that a snapshot has once.
type headSnapshot struct {
	Ends          uint64                 `json:"ends"`
	Due           []string               `json:"due,omitempty"` // IDs of the jobs that may expire
	Recalibration *recalibrationSnapshot `json:"record,omitempty"`
	Score         scoreSnapshot          `json:"score"`
	Means         []meanSnapshot         `json:"means,omitempty"`
}

func (c *Cluster) headSnapshot() headSnapshot {
	h := headSnapshot{
		Ends:          c.ends,
		Recalibration: c.sharedRecalibration().state(),
		Score:         c.score.state(),
		Means:         c.meanThresholds.states(),
	}
	for _, e := range c.unstarted.entries {
		if !e.removed() {
			h.Due = append(h.Due, e.job.ID)
		}
	}
	return h
}

// nodeSnapshot is a node in a snapshot. Load integrals have their own frames.
type nodeSnapshot struct {
	Name     string           `json:"name"`
	Cores    uint32           `json:"cores,omitempty"`
	LastSeen time.Time        `json:"heard,omitzero"`
	Busy     bool             `json:"busy,omitempty"` // it has running jobs
	Hardware schemas.Hardware `json:"hardware,omitzero"`
	Known    bool             `json:"known,omitempty"` // its hardware was reported
	Changed  time.Time        `json:"changed,omitzero"`
	Foreign  ForeignLoad      `json:"foreign,omitzero"`
}

// nodeSnapshots returns the idle nodes by last use, then the others in any order.
func (c *Cluster) nodeSnapshots() []nodeSnapshot {
	all := make([]nodeSnapshot, 0, len(c.nodes))
	for _, name := range c.idleNodes.names() {
		all = append(all, c.nodeSnapshot(c.nodes[name]))
	}
	for _, n := range c.nodes {
		if len(n.running) > 0 {
			all = append(all, c.nodeSnapshot(n))
		}
	}
	return all
}

func (c *Cluster) nodeSnapshot(n *Node) nodeSnapshot {
	s := nodeSnapshot{
		Name: n.Name, Cores: n.Cores, LastSeen: n.LastSeen, Busy: len(n.running) > 0,
		Changed: n.changed, Foreign: n.foreign,
	}
	s.Hardware, s.Known = c.fleet[n.Name]
	return s
}

// modelSnapshot is a model in a snapshot.
type modelSnapshot struct {
	Name           string         `json:"name"` // its schemas.ModelLevel
	Described      Description    `json:"described,omitzero"`
	Configurations []BatchAndCPUs `json:"configurations,omitempty"`
}

func (c *Cluster) modelSnapshots() []modelSnapshot {
	all := make([]modelSnapshot, 0, len(c.models))
	for _, name := range c.lastModels.names() {
		m := c.models[name]
		all = append(all, modelSnapshot{name, m.described, m.configurations})
	}
	return all
}

// integralSnapshot is a load integral in a snapshot.
type integralSnapshot struct {
	Node         string    `json:"node"`
	At           time.Time `json:"at,omitzero"`
	Jobs         float64   `json:"jobs"`
	Procs        float64   `json:"procs"`
	JobSeconds   float64   `json:"job_seconds"`
	ProcsSeconds float64   `json:"procs_seconds"`
}

func (t *loadIntegral) state() integralSnapshot {
	return integralSnapshot{t.node, t.at, t.jobs, t.procs, t.jobSeconds, t.procsSeconds}
}

func (s *integralSnapshot) integral() loadIntegral {
	return loadIntegral{s.Node, s.At, s.Jobs, s.Procs, s.JobSeconds, s.ProcsSeconds}
}

// states returns the load integrals in any order.
func (all loadIntegrals) states() []integralSnapshot {
	states := make([]integralSnapshot, 0, len(all))
	for _, t := range all {
		states = append(states, t.state())
	}
	return states
}

// recalibrationSnapshot is the recalibration in a snapshot.
type recalibrationSnapshot struct {
	Recent []float64         `json:"recent"`
	Kinds  []jobKindSnapshot `json:"kinds"` // by last use
	All    sumSnapshot       `json:"all"`
	Alpha  []alphaSnapshot   `json:"alpha"` // by last use
	Digest string            `json:"digest"`
}

type sumSnapshot struct {
	Sum float64 `json:"sum"`
	N   float64 `json:"n"`
}

func (t residualSum) state() sumSnapshot { return sumSnapshot{t.sum, t.n} }

func (s sumSnapshot) total() residualSum { return residualSum{s.Sum, s.N} }

type jobKindSnapshot struct {
	Model   string `json:"model"`
	Dataset string `json:"dataset,omitempty"`
	CPUs    uint32 `json:"cpus"`
	sumSnapshot
}

type alphaSnapshot struct {
	Confidence float64 `json:"confidence"`
	Alpha      float64 `json:"alpha"`
}

func (r *Recalibration) state() *recalibrationSnapshot {
	if r == nil {
		return nil
	}
	s := &recalibrationSnapshot{Recent: r.recent, All: r.all.state(), Digest: r.digest}
	for _, k := range r.lastKinds {
		s.Kinds = append(s.Kinds, jobKindSnapshot{k.model, k.dataset, k.cpus, r.kinds[k].state()})
	}
	for _, c := range r.lastAlphas {
		s.Alpha = append(s.Alpha, alphaSnapshot{c, r.alpha[c]})
	}
	return s
}

func (s *recalibrationSnapshot) recalibration() *Recalibration {
	if s == nil {
		return nil
	}
	r := &Recalibration{
		recent: s.Recent,
		sorted: slices.Sorted(slices.Values(s.Recent)),
		kinds:  map[jobKind]residualSum{},
		all:    s.All.total(),
		alpha:  map[float64]float64{},
		digest: s.Digest,
	}
	for _, k := range s.Kinds {
		key := jobKind{k.Model, k.Dataset, k.CPUs}
		r.kinds[key], r.lastKinds = k.total(), append(r.lastKinds, key)
	}
	for _, a := range s.Alpha {
		r.alpha[a.Confidence], r.lastAlphas = a.Alpha, append(r.lastAlphas, a.Confidence)
	}
	return r
}

// scoreSnapshot is the score in a snapshot.
type scoreSnapshot struct {
	Promises    schemas.Tally        `json:"promises"`
	Confidences []groupSnapshot      `json:"confidences,omitempty"`
	Users       []groupSnapshot      `json:"users,omitempty"`
	Models      []groupSnapshot      `json:"models,omitempty"`
	Decisions   []groupSnapshot      `json:"decisions,omitempty"`
	Calibration *schemas.Calibration `json:"calibration"`
}

type groupSnapshot struct {
	Name       string        `json:"name,omitempty"`
	Dataset    string        `json:"dataset,omitempty"`
	Confidence float64       `json:"confidence,omitempty"`
	Others     bool          `json:"others,omitempty"`
	Tally      schemas.Tally `json:"tally"`
}

func (s *score) state() scoreSnapshot {
	calibration := s.calibration
	return scoreSnapshot{
		Promises:    s.promises,
		Confidences: s.confidences.states(),
		Users:       s.users.states(),
		Models:      s.models.states(),
		Decisions:   s.decisions.states(),
		Calibration: &calibration,
	}
}

func (s *scoreSnapshot) score() score {
	all := score{
		promises:    s.Promises,
		confidences: groupsOf(s.Confidences),
		users:       groupsOf(s.Users),
		models:      groupsOf(s.Models),
		decisions:   groupsOf(s.Decisions),
	}
	if s.Calibration != nil {
		all.calibration = *s.Calibration
	}
	return all
}

func (g groups) states() []groupSnapshot {
	all := make([]groupSnapshot, 0, len(g))
	for key, t := range g {
		all = append(all, groupSnapshot{key.name, key.dataset, key.confidence, key.others, *t})
	}
	slices.SortFunc(all, func(a, b groupSnapshot) int {
		if a.Others != b.Others {
			return map[bool]int{true: 1, false: -1}[a.Others]
		}
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dataset, b.Dataset),
			cmp.Compare(a.Confidence, b.Confidence))
	})
	return all
}

func groupsOf(states []groupSnapshot) groups {
	all := make(groups, len(states))
	for _, s := range states {
		t := s.Tally
		all[group{s.Name, s.Dataset, s.Confidence, s.Others}] = &t
	}
	return all
}

// meanSnapshot is the mean threshold of a confidence in a snapshot.
type meanSnapshot struct {
	Confidence float64     `json:"confidence"`
	Threshold  float64     `json:"threshold"`
	Over       sumSnapshot `json:"over"`
}

func (m meanThresholds) states() []meanSnapshot {
	all := make([]meanSnapshot, 0, len(m))
	for _, c := range slices.Sorted(maps.Keys(m)) {
		all = append(all, meanSnapshot{c, m[c].threshold, m[c].overestimate.state()})
	}
	return all
}

func meansOf(states []meanSnapshot) meanThresholds {
	all := make(meanThresholds, len(states))
	for _, s := range states {
		all[s.Confidence] = &meanThreshold{threshold: s.Threshold, overestimate: s.Over.total()}
	}
	return all
}
