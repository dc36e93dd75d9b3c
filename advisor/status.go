package advisor

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"

	"golang.org/x/sync/errgroup"
)

func (a *Advisor) status(ctx context.Context, q *schemas.JobStatusRequest) (any, error) {
	j, err := a.job(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	now := a.now()
	a.mu.RLock()
	d := draftStatus(a.cluster, j, statusOf(j), now)
	a.mu.RUnlock()
	return a.complete(&d, now), nil
}

// withLesson adds why the last run of a job is not learned from. The regressors do not name runs without
// epochs.
func (a *Advisor) withLesson(s schemas.JobStatus) schemas.JobStatus {
	s.NotLearned = a.regressors.Load().NotLearned(s.JobID, s.Run)
	if s.Run > 0 && s.EndedAt != nil && s.EpochsDone == 0 {
		s.NotLearned = "it ended without a recognized epoch"
	}
	return s
}

// list returns a page of jobs. Running jobs are re-predicted without holding the lock, so that a
// long page does not delay events.
func (a *Advisor) list(_ context.Context, q *schemas.JobListRequest) (any, error) {
	now := a.now()
	isPredicted := strings.TrimPrefix(q.Sort, "-") == sortProbability
	a.mu.RLock()
	found, next, err := list(a.cluster, q)
	if err == nil && q.Sort != "" && !isPredicted {
		found, next, err = sortedPage(found, q)
	}
	draft := draftStatus
	if q.Brief && !isPredicted {
		draft = briefDraft
	}
	drafts := make([]statusDraft, len(found))
	for i := range found {
		drafts[i] = draft(a.cluster, a.cluster.Job(found[i].JobID), found[i], now)
	}
	page := schemas.JobList{
		Totals:   a.cluster.CountByState(),
		AtRisk:   a.cluster.CountAtRisk(),
		HeldCPUs: a.cluster.HeldByNode(now),
	}
	a.mu.RUnlock()
	if err == nil && isPredicted {
		drafts, next, err = a.mostProbable(drafts, q, now)
	}
	if err != nil {
		return nil, err
	}
	page.Jobs, page.Next = a.completeAll(drafts, now), next
	return page, nil
}

// sortProbability is the only order of job.list for which every job must be predicted, not just its page.
const sortProbability = "probability"

// mostProbable returns the page of the drafts in the order sortProbability. It predicts each job only as the job
// runs, which takes a fraction of the time that all its alternatives take.
func (a *Advisor) mostProbable(
	drafts []statusDraft, q *schemas.JobListRequest, now time.Time,
) (page []statusDraft, next string, err error) {
	unchanged, byID := slices.Clone(drafts), map[string]statusDraft{}
	for i, d := range drafts {
		byID[d.status.JobID] = d
		if d.question != nil {
			unchanged[i].question = d.question.WithCPUs([]int{int(d.question.Self.Setting.CPUs)})
		}
	}
	found, next, err := sortedPage(a.completeAll(unchanged, now), q)
	for i := range found {
		page = append(page, byID[found[i].JobID])
	}
	return page, next, err
}

// completeAll completes drafts on all processors.
func (a *Advisor) completeAll(drafts []statusDraft, now time.Time) []schemas.JobStatus {
	all := make([]schemas.JobStatus, len(drafts))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range drafts {
		group.Go(func() error {
			all[i] = a.complete(&drafts[i], now)
			return nil
		})
	}
	_ = group.Wait() // none fails
	return all
}

// sortedPage sorts all jobs of a list by the field of a request, and returns its page and the ID
// after which the next one begins.
func sortedPage(
	jobs []schemas.JobStatus, q *schemas.JobListRequest,
) (page []schemas.JobStatus, next string, err error) {
	field, descending := strings.CutPrefix(q.Sort, "-")
	keys := map[string]string{}
	for i := range jobs {
		keys[jobs[i].JobID] = sortKey(&jobs[i], field)
	}
	slices.SortStableFunc(jobs, func(a, b schemas.JobStatus) int {
		x, y := keys[a.JobID], keys[b.JobID]
		switch {
		case (x == "") != (y == ""):
			return strings.Compare(y, x) // an unknown figure is last in both orders
		case descending:
			return strings.Compare(y, x)
		}
		return strings.Compare(x, y)
	})
	if q.After != "" {
		at := slices.IndexFunc(jobs, func(j schemas.JobStatus) bool { return j.JobID == q.After })
		if at < 0 {
			return nil, "", unknownAfter(q)
		}
		jobs = jobs[at+1:]
	}
	if limit := pageSize(q); len(jobs) > limit {
		return jobs[:limit], jobs[limit-1].JobID, nil
	}
	return jobs, "", nil
}

// sortKey returns a field of a job as text that sorts like the field; "" if it is unknown.
func sortKey(j *schemas.JobStatus, field string) string {
	instant := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.UTC().Format("2006-01-02T15:04:05.000")
	}
	switch field {
	case sortProbability:
		if j.Probability == nil || j.SLOSeconds == 0 {
			return ""
		}
		return strconv.FormatFloat(*j.Probability, 'f', 9, 64)
	case "deadline":
		return instant(j.DeadlineAt)
	case "started":
		return instant(j.StartedAt)
	case "ended":
		return instant(j.EndedAt)
	case "model":
		return j.Model + "@" + j.Dataset
	case "user":
		return j.User
	case "node":
		return strings.Join(j.Nodes, " ")
	case "state":
		return string(j.State)
	}
	return j.JobID
}

func pageSize(q *schemas.JobListRequest) int { return cmp.Or(q.Limit, schemas.DefaultPage) }

func unknownAfter(q *schemas.JobListRequest) error {
	return schemas.Invalid("after", "no job %q: use the next field of the previous page", q.After)
}

// statusOf returns the reply of job.status without new predictions.
func statusOf(j *cluster.Job) schemas.JobStatus {
	s := schemas.JobStatus{
		JobID:      j.ID,
		State:      j.State,
		User:       j.User,
		Model:      j.Setting.Model,
		Dataset:    j.Setting.Dataset,
		Nodes:      j.Setting.Nodes,
		BatchSize:  j.Setting.BatchSize,
		CPUs:       j.Setting.CPUs,
		Workers:    j.Setting.Workers,
		Loaders:    j.Setting.Loaders,
		Epochs:     j.Setting.Epochs,
		EpochsDone: j.EpochsDone,
		Run:        j.Run,
		StartedAt:  instant(j.StartedAt),
		EndedAt:    instant(j.EndedAt),
		TrainedAt:  instant(j.TrainedAt()),
		DeadlineAt: instant(j.Deadline()),
		Bottleneck: j.Bottleneck(),
		Accuracy:   j.Accuracy,
		Phases:     j.Phases,
		MetSLO:     j.MetSLO,
		Incomplete: j.IsIncomplete(),
		Reason:     j.Reason,
	}
	if measured, predicted := j.Took(); predicted != nil {
		s.PredictedSeconds, s.MeasuredSeconds = predicted, measured.Seconds()
	}
	if j.State == schemas.StateRunning {
		s.LastSeenAt = instant(j.LastSeen.UTC())
	}
	if q := j.Request; q != nil {
		s.Labels = q.Labels
		s.SubmittedAt, s.SLOSeconds, s.TargetAccuracy = instant(j.SubmittedAt), q.SLO.Seconds(), q.TargetAccuracy
		if j.Run == 0 {
			s.Model, s.Dataset, s.Epochs = q.Model, q.Dataset, uint32(q.Epochs)
		}
	}
	if a := j.Advice; a != nil {
		s.Decision = a.Decision
		if j.Run == 0 {
			s.Nodes, s.BatchSize, s.CPUs, s.Workers = a.Nodes, a.BatchSize, a.CPUs, a.Workers
			s.Probability = a.Probability
		}
		isDone := a.Action == schemas.ActionCPUs && a.CPUs == j.Setting.CPUs
		if j.State == schemas.StateRunning && a.Run == j.Run && !isDone {
			s.Proposal = a.Proposal
		}
	}
	return s
}

// statusDraft is the status of a job, with the question that predicts the rest of a running job.
type statusDraft struct {
	status   schemas.JobStatus
	question *decide.Question // nil for a job that does not run, or is not to be predicted
}

// draftStatus completes the status of a job by what the cluster shows, and adds the question for complete
// if the job runs.
func draftStatus(c *cluster.Cluster, j *cluster.Job, status schemas.JobStatus, now time.Time) statusDraft {
	d := briefDraft(c, j, status, now)
	if j.State == schemas.StateRunning {
		d.question = decide.AskRunning(c, j, now)
	}
	return d
}

// briefDraft is draftStatus without the question.
func briefDraft(c *cluster.Cluster, j *cluster.Job, status schemas.JobStatus, now time.Time) statusDraft {
	d := statusDraft{status: status}
	if over := j.Deadline(); j.Run == 0 && !over.IsZero() && now.After(over) {
		d.status.Probability = nil // the one of its answer no longer holds
	}
	if j.State == schemas.StateQueued {
		d.status.QueuePosition = c.QueuePosition(j)
	}
	if j.IsAdmitted() {
		d.status.ReservedSeconds = j.ReservedFor(now).Seconds()
	}
	if j.State == schemas.StateRunning {
		d.status.EpochProgress, d.status.AtRisk = j.ProgressWithin(now), j.IsAtRisk()
	}
	return d
}

// complete returns the status with current predictions for a running job. It needs no lock.
func (a *Advisor) complete(d *statusDraft, now time.Time) schemas.JobStatus {
	s := a.withLesson(d.status)
	if d.question == nil {
		return s
	}
	regressors := *a.regressors.Load()
	advice, from := decide.Decide(d.question, regressors, now), now
	runs := &d.question.Self.Setting
	alt := advice.Running(runs.BatchSize, runs.CPUs)
	if w := &s.EpochProgress; w.EpochSeconds > 0 && (alt == nil || alt.PredictedSeconds == nil) {
		advice = decide.Decide(d.question.AtEpochEnd(w), regressors, now)
		alt = advice.Running(runs.BatchSize, runs.CPUs)
		from = now.Add(time.Duration(w.LeftSeconds() * float64(time.Second)))
	}
	if advice.Action != schemas.ActionKeep { // otherwise the decision is that of the last advice, as in the events
		s.Decision, s.Proposal = advice.Decision, advice.Message
		addCost(&s, advice.Chosen, alt)
	}
	if alt != nil && alt.PredictedSeconds != nil {
		left := time.Duration(*alt.PredictedSeconds * float64(time.Second))
		s.Probability, s.PredictedEndAt = alt.Probability, instant(from.Add(left))
	}
	if s.TrainedAt != nil { // what the job does after its last epoch does not count
		s.PredictedEndAt = s.TrainedAt
	}
	return s
}

// addCost adds what a proposed change brings and costs, compared with continuing unchanged.
func addCost(s *schemas.JobStatus, proposed, unchanged *schemas.Alternative) {
	s.SavedProbability = proposed.Probability
	if unchanged == nil {
		return
	}
	less := func(a, b *float64) *float64 {
		if a == nil || b == nil {
			return nil
		}
		return new(*a - *b)
	}
	s.AccuracyLoss = less(unchanged.PredictedAccuracy, proposed.PredictedAccuracy)
	s.ExtraCPUSeconds = less(proposed.CPUSeconds, unchanged.CPUSeconds)
}

// instant returns a pointer to t for JSON, or nil for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// maxSearched bounds the jobs that one request searches, because events wait meanwhile.
const maxSearched = 5000

// list returns a page of jobs, newest first, and the ID after which the next page begins; "" at the
// end. A page of a search ends after maxSearched jobs. For a sorted list it returns all jobs, up to
// maxSearched, for sortedPage.
func list(c *cluster.Cluster, q *schemas.JobListRequest) ([]schemas.JobStatus, string, error) {
	limit, after := pageSize(q), q.After
	if q.Sort != "" {
		limit, after = maxSearched, ""
	}
	jobs, known := c.NewestFirst(after, q.State)
	if !known {
		return nil, "", unknownAfter(q)
	}
	page := []schemas.JobStatus{}
	last, searched := "", 0
	byState := schemas.JobListRequest{
		State: q.State, Limit: q.Limit, After: q.After, Sort: q.Sort, Brief: q.Brief,
	}
	isSearch := *q != byState
	for j := range jobs {
		if len(page) == limit || searched == maxSearched {
			return page, last, nil
		}
		last = j.ID
		s := statusOf(j)
		if isSearch {
			searched++
			if !selects(q, &s) || q.AtRisk && (j.State != schemas.StateRunning || !j.IsAtRisk()) {
				continue
			}
		}
		page = append(page, s)
	}
	return page, "", nil
}

// selects reports whether a request asks for a job, other than by its state and risk.
func selects(q *schemas.JobListRequest, s *schemas.JobStatus) bool {
	search := strings.ToLower(q.Search)
	names := append([]string{s.JobID, s.Model, s.Dataset, s.User}, s.Nodes...)
	return (q.User == "" || q.User == s.User) && (q.Model == "" || q.Model == s.Model) &&
		(q.Dataset == "" || q.Dataset == s.Dataset) && (q.Node == "" || slices.Contains(s.Nodes, q.Node)) &&
		(!q.Missed || s.MetSLO != nil && !*s.MetSLO) &&
		(q.Label == "" || schemas.HasLabel(s.Labels, q.Label)) && isWithin(s, q.Since, q.Until) &&
		slices.ContainsFunc(names, func(name string) bool { return strings.Contains(strings.ToLower(name), search) })
}

// isWithin reports whether a job was open at some time of a period. A zero instant is no limit.
func isWithin(s *schemas.JobStatus, since, until time.Time) bool {
	begin := cmp.Or(s.SubmittedAt, s.StartedAt)
	return (s.EndedAt == nil || !s.EndedAt.Before(since)) &&
		(until.IsZero() || begin == nil || begin.Before(until))
}

// scoreReply answers job.score. It counts the jobs without holding the lock.
func (a *Advisor) scoreReply(_ context.Context, q *schemas.ScoreRequest) (any, error) {
	now := a.now()
	if q.Since.After(now) {
		return nil, schemas.Invalid("since", "%s is later than now", q.Since.UTC().Format(time.RFC3339))
	}
	a.mu.RLock()
	ended := a.cluster.Ended()
	a.mu.RUnlock()
	return cluster.ScoreOf(ended, q, now), nil
}
