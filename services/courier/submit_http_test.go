package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"courier/gateway"
	"courier/schemas"
)

// HTTP requests with the same key create one job in the log of a real advisor.
func TestSubmit_TheSameKeyIsTheSameJob(t *testing.T) {
	l := startAll(t, nil)
	submit := func(epochs int) (status int, e gateway.SubmitError, advice schemas.Advice) {
		t.Helper()
		body := fmt.Sprintf(`{"model":"m","cpus":1,"epochs":%d,"slo":"10m"}`, epochs)
		r, err := http.NewRequestWithContext(within(t, patience), http.MethodPost,
			l.Endpoints().HTTPURL+"/api/v1/jobs", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "nightly-2026-11-22")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var into any = &advice
		if resp.StatusCode != http.StatusCreated {
			into = &e
		}
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, e, advice
	}

	first, _, advice := submit(3)
	again, _, same := submit(3)
	if first != http.StatusCreated || again != http.StatusCreated || advice.JobID == "" ||
		advice.JobID != same.JobID {
		t.Errorf("two submissions = %d and %d for %q and %q, want 201 for one job", first, again,
			advice.JobID, same.JobID)
	}
	status, e, _ := submit(4)
	if status != http.StatusConflict || e.JobID != advice.JobID || e.Field != "Idempotency-Key" {
		t.Errorf("another body = %d %v of %s, want a conflict of %s", status, e.Error, e.JobID,
			advice.JobID)
	}
	var list schemas.JobList
	get(t, l.Endpoints().HTTPURL+"/api/v1/jobs", &list)
	if len(list.Jobs) != 1 {
		t.Errorf("%d jobs, want 1", len(list.Jobs))
	}
}
