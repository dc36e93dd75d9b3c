package trainer

import "courier/schemas"

// Reasons for not believing a whole run: published studies contain such runs.
const (
	refusedGap    = "run with epochs missing between others"
	refusedBack   = "run whose epoch numbers went back: a restart, or another job's log"
	refusedModel  = "run that told of several models: another job's log"
	refusedCopied = "run with the very times of another run"
)

// tellingEpochs are so many that two runs do not have the same times by chance.
const tellingEpochs = 3

// lie says why a run is not believed; "" if it is. times holds the times of the
// runs before it, and gets its own.
func (r *run) lie(times map[string]bool) string {
	switch {
	case r.back:
		return refusedBack
	case r.strange:
		return refusedModel
	}
	for i := 1; i < len(r.epochs); i++ {
		if r.epochs[i].Epoch != r.epochs[i-1].Epoch+1 {
			return refusedGap
		}
	}
	if k := r.times(); k != "" {
		if times[k] {
			return refusedCopied
		}
		times[k] = true
	}
	return ""
}

// times is a key of the run's times, to the last digit; "" if they are too few to
// tell, or all alike.
func (r *run) times() string {
	if len(r.epochs) < tellingEpochs {
		return ""
	}
	alike := true
	b := make([]byte, 0, 8*len(r.epochs))
	for _, e := range r.epochs {
		alike = alike && e.DurationSeconds == r.epochs[0].DurationSeconds
		b = appendBits(b, e.DurationSeconds)
	}
	if alike {
		return ""
	}
	return string(b)
}

// says notes what an event of the run says it trains.
func (r *run) says(s *schemas.Setting) {
	if r.model == "" {
		r.model = s.Model
	}
	r.strange = r.strange || r.model != s.Model
}
