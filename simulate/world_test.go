package simulate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"courier/schemas"
	"courier/simulate"
)

// changed returns the default world with a replaced text.
func changed(t testing.TB, old, new string) []byte {
	t.Helper()
	data, err := json.Marshal(simulate.DefaultWorld())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("the default world has no %s", old)
	}
	return []byte(strings.Replace(string(data), old, new, 1))
}

func TestParseWorld_NamesTheField(t *testing.T) {
	for _, c := range []struct{ old, new, field string }{
		{`"load":0.7`, `"load":0`, "load"},
		{`"load":0.7`, `"load":0.01`, ""}, // the minimum
		{`"load":0.7`, `"load":5`, "load"},
		{`"load":0.7`, `"load":"much"`, "load"},
		{`"load":0.7`, `"laod":0.7`, ""},
		{`"run_ratio":0.04`, `"run_ratio":-1`, "noise.run_ratio"},
		{`"epoch_ratio":0.03`, `"epoch_ratio":2`, "noise.epoch_ratio"},
		{`"accuracy":0.002`, `"accuracy":2`, "noise.accuracy"},
		{`"least_ratio":0.8`, `"least_ratio":0`, "slo.least_ratio"},
		{`"most_ratio":2.5`, `"most_ratio":0.7`, "slo.most_ratio"},
		{`"sample_seconds":10`, `"sample_seconds":31`, "sample_seconds"},
		{`"jobs_at_once":[1,`, `"jobs_at_once":[0,`, "warm_up.jobs_at_once"},
		{`"name":"node-1"`, `"name":"Node 1"`, "nodes[0].name"},
		{`"name":"node-2"`, `"name":"node-1"`, "nodes[1].name"},
		{`"cores":16`, `"cores":0`, "nodes[0].cores"},
		{`"cores":16`, `"cores":-1`, "nodes.cores"},
		{`"drift":[]`, `"drift":[{"after_seconds":1,"factor":0,"node":""}]`, "drift[0].factor"},
		{`"drift":[]`, `"drift":[{"after_seconds":-1,"factor":2}]`, "drift[0].after_seconds"},
		{
			`"drift":[]`, `"drift":[{"after_seconds":1,"factor":2,"node":"nowhere"}]`,
			"drift[0].node",
		},
		{`"model":"lenet5"`, `"model":""`, "families[0].model"},
		{`"model":"lenet5"`, `"model":"simplenet"`, "families[1].model"},
		{`"model":"lenet5"`, `"model":"\u0007"`, "families[0].cpus[0]"},
		{`"share":0.5`, `"share":0`, "families[0].share"},
		{`"training_samples":60000`, `"training_samples":0`, "families[0].training_samples"},
		{`"epochs":[10]`, `"epochs":[]`, "families[0].epochs"},
		{`"epochs":[10]`, `"epochs":[1001]`, "families[0].epochs"},
		{`"batch_sizes":[64,`, `"batch_sizes":[128,`, "families[0].batch_sizes"},
		{`"cpus":[[1],[2],[4],[8],[2,4,8]]`, `"cpus":[]`, "families[0].cpus"},
		{`"cpus":[[1],[2],[4],[8],[2,4,8]]`, `"cpus":[[]]`, "families[0].cpus[0]"},
		{`"cpus":[[1],[2],[4],[8],[2,4,8]]`, `"cpus":[[17]]`, "families[0].cpus[0]"},
		{
			`"cpus":[[1],`, `"cpus":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17],`,
			"families[0].cpus[0]",
		},
		{`"startup_seconds":8`, `"startup_seconds":-1`, "families[0].startup_seconds"},
		{`"constant":3.309`, `"constant":21`, "families[0].epoch_seconds.constant"},
		{`"constant":3.309`, `"constant":19`, "families[0].epoch_seconds"},
		{`"neighbours":0.59`, `"neighbours":-0.1`, "families[0].epoch_seconds.neighbours"},
		{`"iterations":-0.567`, `"iterations":0.1`, "families[0].accuracy.iterations"},
		{`"startup_seconds":8`, `"startup_seconds":86400`, ""},
		{`"most_ratio":2.5`, `"most_ratio":1000`, ""},
		{`"epochs":[10]`, `"epochs":[10,1000]`, ""},
		{`"jobs_at_once":[1,`, `"jobs_at_once":[64,`, ""},
	} {
		_, err := simulate.ParseWorld(changed(t, c.old, c.new))
		if c.field == "" && c.new != `"laod":0.7` {
			if err != nil {
				t.Errorf("%s: %v, want no error", c.new, err)
			}
			continue
		}
		var wrong *schemas.Error
		if !errors.As(err, &wrong) || wrong.Code != schemas.CodeInvalid || wrong.Field != c.field {
			t.Errorf("%s: %v, want invalid: %s", c.new, err, c.field)
		}
	}
	for name, data := range map[string]string{
		"nothing":      "",
		"half a world": `{"load":`,
		"two worlds":   "{} {}",
		"an empty one": "{}",
		"a list":       "[]",
		"a large one":  `{"source":"` + strings.Repeat("a", 1<<20) + `"}`,
	} {
		if _, err := simulate.ParseWorld([]byte(data)); !errors.Is(err, schemas.ErrInvalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

// Every accepted world can be played, and all its requests are valid.
func FuzzParseWorld(f *testing.F) {
	f.Add(changed(f, `"load":0.7`, `"load":1`))
	f.Add(changed(f, `"drift":[]`, `"drift":[{"after_seconds":50,"factor":2,"node":"node-2"}]`))
	f.Add([]byte(`{"nodes":[{"name":"n","cores":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := simulate.ParseWorld(data)
		if err != nil {
			if !errors.Is(err, schemas.ErrInvalid) {
				t.Fatalf("ParseWorld = %v, want ErrInvalid", err)
			}
			return
		}
		s := &simulate.Scenario{World: w, Jobs: w.Jobs(3, 0.9, 1)}
		for _, j := range s.Jobs {
			if err := j.Request.Validate(); err != nil {
				t.Fatalf("request %+v: %v", j.Request, err)
			}
		}
		outcomes, err := s.Play(t.Context(), newRule(simulate.RuleLargest, 1), nil)
		if err != nil && !strings.Contains(err.Error(), "overloaded") {
			t.Fatal(err)
		}
		if err == nil && len(outcomes) != 3 {
			t.Fatalf("%d outcomes, want one for each of 3 jobs", len(outcomes))
		}
	})
}
