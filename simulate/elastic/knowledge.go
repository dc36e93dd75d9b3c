package elastic

import "courier/policy"

// knowledge is what policies know about jobs.
type knowledge interface {
	// job returns the view of an undecided or admitted job.
	job(j *simulatedJob) policy.ElasticJob
	// measured is called when a running job has made progress at its number of GPUs for a while.
	measured(j *simulatedJob)
}

// exactKnowledge shows the true rates.
type exactKnowledge struct{}

func (exactKnowledge) job(j *simulatedJob) policy.ElasticJob {
	v := j.view()
	for i := range v.Options {
		v.Options[i].Curve = j.options[j.firstOption()+i].curve
	}
	return v
}

func (exactKnowledge) measured(*simulatedJob) {}

// view returns the policy's view of a job without its curves. An admitted job has one option.
func (j *simulatedJob) view() policy.ElasticJob {
	v := policy.ElasticJob{
		ID:          j.ID,
		Submitted:   origin.Add(j.Submitted),
		Deadline:    origin.Add(j.Deadline),
		Units:       j.gpus,
		PausedUntil: origin.Add(j.pausedUntil),
	}
	if j.admitted {
		v.Options = []policy.Option{{Work: max(0, j.left)}}
		return v
	}
	v.Options = make([]policy.Option, len(j.options))
	for i, o := range j.options {
		v.Options[i].Work = o.iterations
	}
	return v
}

// firstOption returns the index of the option that the view's first option shows.
func (j *simulatedJob) firstOption() int {
	if j.admitted {
		return j.chosen
	}
	return 0
}
