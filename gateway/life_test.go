package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// trainer returns endpoints that answer regressor.* with the examples of package schemas, and
// reject unknown regressors.
func trainer(t *testing.T, saw *[]any) []bus.Endpoint {
	list := example[schemas.RegressorList](t, "regressor_list")
	promoted := example[schemas.Promoted](t, "promoted")
	return []bus.Endpoint{
		bus.Handle(schemas.SubjectRegressorList, func(_ context.Context, q *schemas.RegressorListRequest) (any, error) {
			*saw = append(*saw, *q)
			return list, nil
		}),
		bus.Handle(schemas.SubjectRegressorPromote, func(_ context.Context, q *schemas.PromoteRequest) (any, error) {
			*saw = append(*saw, *q)
			if q.ModelDigest == "000000" {
				return nil, &schemas.Error{
					Code:    schemas.CodeNotFound,
					Field:   "model_digest",
					Message: "no such regressor",
				}
			}
			return promoted, nil
		}),
		bus.Handle(schemas.SubjectRegressorRollback, func(_ context.Context, q *schemas.RollbackRequest) (any, error) {
			*saw = append(*saw, *q)
			return promoted, nil
		}),
	}
}

// The response contains the regressors of the trainer and the events of the log, each once, whether
// they were stored before or after the start of the gateway.
func TestRegressorLife_ListsRegressorsAndEvents(t *testing.T) {
	b, saw := bustest.New(t), []any{}
	publish := func(e schemas.Event) {
		t.Helper()
		if _, err := b.Publish(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, b, trainer(t, &saw)...)
	promoted := example[schemas.Promoted](t, "promoted")
	rejected := example[schemas.Rejected](t, "rejected")
	drift := example[schemas.Drift](t, "drift")
	first := *promoted
	first.Revision, first.EventID = 1, schemas.PromotedID(first.Target, 1)
	other := *promoted
	other.Target, other.EventID = schemas.TargetAccuracy, schemas.PromotedID(
		schemas.TargetAccuracy, 2,
	)
	publish(&first)
	publish(&other)
	publish(drift)
	h := open(t, b, gateway.Options{})
	publish(promoted)
	publish(rejected)
	want := gateway.RegressorLife{
		Regressors: example[schemas.RegressorList](t, "regressor_list").Regressors,
		Promotions: []*schemas.Promoted{
			&first, promoted,
		},
		Rejections: []*schemas.Rejected{rejected},
		Drifts:     []*schemas.Drift{drift},
	}
	eventually(t, func() error {
		a := h.do(t, "GET", "/api/v1/regressors/life?target="+promoted.Target, "")
		if d := cmp.Diff(want, read[gateway.RegressorLife](t, a)); a.status != http.StatusOK ||
			d != "" {
			return fmt.Errorf("life = %d (-want +got):\n%s", a.status, d)
		}
		return nil
	})
	if last := saw[len(saw)-1]; last != (schemas.RegressorListRequest{Target: promoted.Target}) {
		t.Errorf("request to the trainer = %+v, want the target", last)
	}
	if n := len(
		read[gateway.RegressorLife](t, h.do(t, "GET", "/api/v1/regressors/life", "")).Promotions,
	); n != 3 {
		t.Errorf("%d promotions of all targets, want 3", n)
	}
	checkError(t, "an unknown target",
		h.do(t, "GET", "/api/v1/regressors/life?target=weather", ""), 400, schemas.CodeInvalid,
		"target")
	checkError(t, "another parameter", h.do(t, "GET", "/api/v1/regressors/life?limit=3", ""), 400,
		schemas.CodeInvalid, "limit")
}

func TestRegressors_ArePromotedAndRolledBack(t *testing.T) {
	b, saw := bustest.New(t), []any{}
	serve(t, b, trainer(t, &saw)...)
	h := open(t, b, gateway.Options{})
	promoted := *example[schemas.Promoted](t, "promoted")
	for _, c := range []struct {
		path, body string
		want       any
	}{
		{
			"epoch_time/promote", `{"model_digest":"cd34ab","reason":"a new machine"}`,
			schemas.PromoteRequest{
				Target:      "epoch_time",
				ModelDigest: "cd34ab",
				Reason:      "a new machine",
			},
		},
		{
			"accuracy/rollback", `{"reason":"worse"}`,
			schemas.RollbackRequest{Target: "accuracy", Reason: "worse"},
		},
		{"startup_time/rollback", `{}`, schemas.RollbackRequest{Target: "startup_time"}},
	} {
		a := h.do(t, "POST", "/api/v1/regressors/"+c.path, c.body)
		if d := cmp.Diff(promoted, read[schemas.Promoted](t, a)); a.status != http.StatusOK ||
			d != "" {
			t.Errorf("%s = %d, want the promotion (-want +got):\n%s", c.path, a.status, d)
		}
		if got := saw[len(saw)-1]; got != c.want {
			t.Errorf("%s: forwarded request %+v, want %+v", c.path, got, c.want)
		}
	}
	for _, c := range []struct {
		path, body string
		status     int
		code       schemas.Code
		field      string
	}{
		{
			"epoch_time/promote", `{"model_digest":"000000"}`, 404, schemas.CodeNotFound,
			"model_digest",
		},
		{"epoch_time/promote", `{"model_digest":"cd3"}`, 400, schemas.CodeInvalid, "model_digest"},
		{"epoch_time/promote", `{}`, 400, schemas.CodeInvalid, "model_digest"},
		{"weather/promote", `{"model_digest":"cd34ab"}`, 400, schemas.CodeInvalid, "target"},
		{"epoch_time/rollback", `{"target":"accuracy"}`, 400, schemas.CodeInvalid, "target"},
		{"epoch_time/rollback", `{"force":true}`, 400, schemas.CodeInvalid, "force"},
		{"epoch_time/rollback", `null`, 400, schemas.CodeInvalid, ""},
		{"epoch_time/rollback", `[1]`, 400, schemas.CodeInvalid, ""},
		{
			"epoch_time/rollback", ``, 415, schemas.CodeInvalid, "",
		}, // not JSON, as a form of another site sends it
	} {
		checkError(t, c.path+" "+c.body, h.do(t, "POST", "/api/v1/regressors/"+c.path, c.body),
			c.status, c.code, c.field)
	}
}
