package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"courier/schemas"
)

func TestDecodeRequest_ProposesTheNearestField(t *testing.T) {
	for _, c := range []struct {
		text    string
		request schemas.Request
		field   string
		want    string // empty: no proposal
	}{
		{`{"job_id":"a"}`, &schemas.JobRequest{}, "job_id", "id"},
		{`{"batch_size":[8]}`, &schemas.JobRequest{}, "batch_size", "batch_sizes"},
		{`{"epoch":3}`, &schemas.JobRequest{}, "epoch", "epochs"},
		{`{"accuracy":0.9}`, &schemas.JobRequest{}, "accuracy", "target_accuracy"},
		{`{"job_id":"a"}`, &schemas.JobStatusRequest{}, "job_id", "id"},
		{`{"colour":"red"}`, &schemas.JobRequest{}, "colour", ""},
		{`{"` + strings.Repeat("x", 10000) + `":1}`, &schemas.JobRequest{}, "", ""},
	} {
		var e *schemas.Error
		err := schemas.DecodeRequest([]byte(c.text), c.request)
		if !errors.As(err, &e) || c.field != "" && e.Field != c.field {
			t.Errorf("%.40s: %v, want an error about %s", c.text, err, c.field)
			continue
		}
		_, proposed, _ := strings.Cut(e.Message, "did you mean ")
		if got := strings.TrimSuffix(proposed, "?"); got != c.want {
			t.Errorf("%.40s: proposes %q, want %q", c.text, got, c.want)
		}
	}
}
