package importer

import "fmt"

// Place is a position in a source.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // from 1; 0: the file as a whole
}

// String returns "file:line".
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Reasons for rejecting a run.
const (
	ReasonMissing    = "a field is missing"
	ReasonInvalid    = "a field is not valid"
	ReasonUnreadable = "the source cannot be read"
	ReasonEpochs     = "epochs are missing"
	ReasonCopied     = "the time is a copy of another run's"
	ReasonPositive   = "a time is not positive"
	ReasonOrder      = "the run ended before it started"
	ReasonFuture     = "the run ends in the future"
	ReasonMixed      = "the log has lines of another job or of a restart"
	ReasonSteps      = "the rows are steps of a run"
	ReasonUnfinished = "the run has no end"
)

// Refusal describes why a run was rejected.
type Refusal struct {
	Place
	Field   string `json:"field,omitempty"` // field, with its name in the source if that differs
	Reason  string `json:"reason"`          // one of the Reason constants
	Message string `json:"message"`         // what is wrong and how to correct it
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Field == "" {
		return fmt.Sprintf("%s: %s", r.Place, r.Message)
	}
	return fmt.Sprintf("%s: %s: %s", r.Place, r.Field, r.Message)
}

func refuse(reason, field, format string, values ...any) *Refusal {
	return &Refusal{Reason: reason, Field: field, Message: fmt.Sprintf(format, values...)}
}
