package schemas_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"courier/schemas"
)

func TestDecodeRequest_NamesTheWrongField(t *testing.T) {
	const good = `"model":"m","cpus":2,"epochs":3`
	many := strings.TrimSuffix(strings.Repeat("1,", 100), ",")
	for _, c := range []struct{ body, want string }{
		{`{` + good + `}`, ""},
		{`{` + good + `,"slo":"10m","cpus":[1,2]}`, ""},
		{`{` + strings.Replace(good, "model", "Model", 1) + `}`, ""}, // names match in any case
		{`{` + good + `,"weights":null,"labels":null,"nodes":null,"elastic":null}`, ""},
		{`{` + good + `,"slo":"soon"}`, "slo"},
		{`{` + good + `,"slo":600}`, "slo"},
		{`{` + good + `,"slo":"-10m"}`, "slo"},
		{`{` + good + `,"slo":"0s"}`, "slo"},
		{`{` + good + `,"slo":"9000h"}`, "slo"},
		{`{` + good + `,"deadline":"10m"}`, "deadline"},
		{`{"cpus":2,"epochs":3}`, "model"},
		{`{"model":"m","epochs":3}`, "cpus"},
		{`{"model":"m","cpus":0,"epochs":3}`, "cpus"},
		{`{"model":"m","cpus":null,"epochs":3}`, "cpus"},
		{`{"model":"m","cpus":1.5,"epochs":3}`, "cpus"},
		{`{"model":"m","cpus":[2,2],"epochs":3}`, "cpus"},
		{`{"model":"m","cpus":1e9,"epochs":3}`, "cpus"},
		{`{` + good + `,"workers":2}`, ""},
		{`{` + good + `,"workers":[1,2,4]}`, ""},
		{`{` + good + `,"workers":[2,2]}`, "workers"},
		{`{` + good + `,"workers":"two"}`, "workers"},
		{`{` + good + `,"workers":0}`, "workers"},
		{`{` + good + `,"loaders":[0,2,4]}`, ""},
		{`{` + good + `,"loaders":[-1]}`, "loaders"},
		{`{` + good + `,"loaders":[0,0]}`, "loaders"},
		{`{"model":"m","cpus":2}`, "epochs"},
		{`{"model":"m","cpus":2,"epochs":-1}`, "epochs"},
		{`{"model":"m","cpus":2,"epochs":1e300}`, "epochs"},
		{`{"model":7,"cpus":2,"epochs":3}`, "model"},
		{`{` + good + `,"model":"` + strings.Repeat("m", 300) + `"}`, "model"},
		{`{` + good + `,"model":"a\u0000b"}`, "model"},
		{`{` + good + `,"batch_sizes":[0,64]}`, "batch_sizes"},
		{`{` + good + `,"batch_sizes":[` + many + `]}`, "batch_sizes"},
		{`{` + good + `,"batch_sizes":"64"}`, "batch_sizes"},
		{`{` + good + `,"batch_sizes":[64,"128"]}`, "batch_sizes"},
		{`{` + good + `,"confidence":1}`, "confidence"},
		{`{` + good + `,"confidence":-0.1}`, "confidence"},
		{`{` + good + `,"slo":"1m","weights":{"accuracy":1,"time":0}}`, "weights"},
		{`{` + good + `,"weights":{"accuracy":0,"time":0}}`, "weights"},
		{`{` + good + `,"weights":{"accuracy":1,"speed":2}}`, "weights.speed"},
		{`{` + good + `,"id":"../../etc"}`, "id"},
		{`{` + good + `,"id":"a.b"}`, "id"},
		{`{` + good + `,"id":"job *"}`, "id"},
		{`{` + good + `,"id":"` + strings.Repeat("a", 65) + `"}`, "id"},
		{`{` + good + `,"nodes":["Node A"]}`, "nodes"},
		{`{` + good + `,"labels":{"":"x"}}`, "labels"},
		{`{` + good, "whole"},
		{`[]`, "whole"},
		{`{` + good + `}{}`, "whole"},
		{`{"model":"` + strings.Repeat("m", schemas.MaxMessageBytes) + `"}`, "whole"},
		{"\xff\xfe", "whole"},
	} {
		var q schemas.JobRequest
		err := schemas.DecodeRequest([]byte(c.body), &q)
		if c.want == "" {
			if err != nil {
				t.Errorf("DecodeRequest(%.80s) = %v, want none", c.body, err)
			}
			continue
		}
		var refusal *schemas.Error
		if !errors.As(err, &refusal) || refusal.Code != schemas.CodeInvalid {
			t.Errorf("DecodeRequest(%.80s) = %v, want an invalid %s", c.body, err, c.want)
			continue
		}
		if got := refusal.Field; got != c.want && !(c.want == "whole" && got == "") {
			t.Errorf("DecodeRequest(%.80s) names %q, want %q (%v)", c.body, got, c.want, err)
		}
	}
}

func TestDecodeRequest_ListsTheFieldsOfTheRequest(t *testing.T) {
	var e *schemas.Error
	err := schemas.DecodeRequest([]byte(`{"job_id":"a"}`), &schemas.JobCancelRequest{})
	if !errors.As(err, &e) || e.Field != "job_id" || !strings.HasSuffix(e.Message, "; want one of id, reason") {
		t.Errorf("DecodeRequest = %v, want an error about job_id that lists id and reason", err)
	}
}

// A valid request stays the same through defaults, encoding and decoding.
func FuzzDecodeRequest(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("testdata", "job_request.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(`{"model":"m","cpus":2,"epochs":3}`))
	f.Add([]byte(`{"model":"m","cpus":[1],"epochs":3,"weights":{"accuracy":1,"time":0}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var q schemas.JobRequest
		if err := schemas.DecodeRequest(data, &q); err != nil {
			if !errors.Is(err, schemas.ErrInvalid) {
				t.Fatalf("refused with %v, want invalid", err)
			}
			return
		}
		full := q.WithDefaults()
		b, err := schemas.Marshal(&full)
		if err != nil {
			t.Fatal(err)
		}
		var again schemas.JobRequest
		if err := schemas.DecodeRequest(b, &again); err != nil {
			t.Fatalf("%s is accepted, but rejected after encoding: %v", data, err)
		}
	})
}

// Parse never panics, and every event that it returns is valid.
func FuzzParse(f *testing.F) {
	for _, m := range messages() {
		if m.kind != "event" {
			continue
		}
		data, err := os.ReadFile(filepath.Join("testdata", m.name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.NewReplacer("{id}", "mlp-7", "{node}", "node-a", "{target}", "epoch_time",
			"{stream}", "node").Replace(m.subject),
			data)
	}
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		e, err := schemas.Parse(subject, data)
		if err != nil {
			if !errors.Is(err, schemas.ErrInvalid) {
				t.Fatalf("refused with %v, want invalid", err)
			}
			return
		}
		if e.Subject() != subject || e.ID() == "" || e.Validate() != nil {
			t.Fatalf("accepted %+v from %s", e, subject)
		}
		if _, err := schemas.Marshal(e); err != nil {
			t.Fatalf("%s is accepted, but cannot be encoded: %v", data, err)
		}
		schemas.RowOf(e)
	})
}

func TestParse_IsTolerantOfNewFields(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "epoch.json"))
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(data), "{", `{"field_of_a_later_version": 1,`, 1)
	e, err := schemas.Parse("job.mlp-7.epoch", []byte(later))
	if err != nil || e.(*schemas.Epoch).Epoch != 3 {
		t.Errorf("Parse = %+v, %v, want epoch 3 despite the unknown field", e, err)
	}
	if _, err := schemas.Parse("job.other.epoch", data); !errors.Is(err, schemas.ErrInvalid) {
		t.Errorf("Parse of another job's subject = %v, want invalid", err)
	}
}

func TestNodeName(t *testing.T) {
	for _, c := range []struct{ host, want string }{
		{"Node7.Rack.Example", "node7-rack-example"}, {"", "node"}, {"ok-1_2", "ok-1_2"}, {
			strings.Repeat("x", 100), strings.Repeat("x", 64),
		}, {"käse", "k--se"},
	} {
		if got := schemas.NodeName(c.host); got != c.want || !schemas.ValidToken(got) {
			t.Errorf("NodeName(%q) = %q, want %q", c.host, got, c.want)
		}
	}
}

func TestHasLabel_ComparesNameAndValue(t *testing.T) {
	labels := map[string]string{"team": "vision", "dry": ""}
	for label, want := range map[string]bool{
		"team": true, "team=vision": true, "team=": false, "team=audio": false, "dry=": true,
		"owner": false, "owner=": false,
	} {
		if got := schemas.HasLabel(labels, label); got != want {
			t.Errorf("HasLabel(%v, %q) = %v, want %v", labels, label, got, want)
		}
	}
}
