package schemas

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// fullRequest returns a request with all fields set.
func fullRequest() JobRequest {
	return JobRequest{
		JobID:           "mlp-7",
		Model:           "digits-mlp",
		Dataset:         "digits",
		Parameters:      1 << 60,
		Layers:          3,
		TrainingSamples: 1797,
		CPUs:            CPUs{1, 2},
		Elastic:         true,
		BatchSizes:      []int{4, 16, 32, 64},
		Epochs:          10,
		MaxEpochs:       20,
		TargetAccuracy:  0.9,
		SLO:             Duration(90 * time.Second),
		Weights:         &Weights{Accuracy: 0.25, Time: 0.75},
		Confidence:      0.95,
		Promise:         PromiseMean,
		Nodes:           []string{"node-a", "node-b"},
		NewNodes:        true,
		User:            "ada",
		Labels: map[string]string{
			"team": "vision",
			"cost": "7",
		},
	}
}

// The decoder reads every field of a job request without encoding/json.
func TestReadJobRequest_DecodesEveryField(t *testing.T) {
	want := fullRequest()
	v := reflect.ValueOf(want)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set", v.Type().Field(i).Name)
		}
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := readJobRequest(data); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("readJobRequest() = %+v, %t, want the encoded request\n%s", got, ok, data)
	}
}

// The decoder returns the result of encoding/json, or false.
func FuzzReadJobRequest(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("testdata", "job_request.json"))
	if err != nil {
		f.Fatal(err)
	}
	full, err := json.Marshal(fullRequest())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add(full)
	for _, s := range []string{
		``, `{}`, ` { } `, `null`, `[]`, `{}{}`, `{"model":"a",}`, `{,}`, `{"model" "a"}`,
		`{"model":"a" "user":"b"}`, "{\"model\":\"a\"}\f", `{"Model":"a"}`, `{"mod\u0065l":"a"}`,
		`{"model":"a\nb"}`, `{"model":"é"}`,
		`{"model":null,"slo":null,"cpus":null,"weights":null,"labels":null}`,
		`{"model":"a","model":"b"}`, `{"deadline":1}`, `{"model":7}`,
		`{"cpus":2}`, `{"cpus":-0}`,
		`{"cpus":02}`, `{"cpus":2.0}`, `{"cpus":[]}`, `{"cpus":[1,]}`, `{"cpus":[1 2]}`,
		`{"cpus":[1],"cpus":[]}`, `{"cpus":[null]}`, `{"cpus":"2"}`,
		`{"cpus":9223372036854775807}`, `{"cpus":9223372036854775808}`,
		`{"batch_sizes":[64,128],"batch_sizes":[1]}`, `{"batch_sizes":[-1]}`,
		`{"batch_sizes":[1e2]}`, `{"epochs":-3}`, `{"epochs":1e3}`, `{"layers":4294967295}`,
		`{"layers":4294967296}`, `{"parameters":18446744073709551616}`,
		`{"slo":"10m"}`,
		`{"slo":"1h30m.5s"}`, `{"slo":""}`, `{"slo":"-1s"}`, `{"slo":".5s"}`, `{"slo":600}`,
		`{"slo":"0s"}`,
		`{"slo":"1us"}`, `{"slo":"9999999h"}`, `{"confidence":0.95}`, `{"confidence":1e-400}`,
		`{"confidence":1e400}`, `{"confidence":-0}`, `{"confidence":NaN}`, `{"promise":"mean"}`,
		`{"promise":7}`,
		`{"weights":{}}`, `{"weights":{"accuracy":1},"weights":{"time":2}}`,
		`{"weights":{"accuracy":1,"other":2}}`, `{"nodes":[]}`,
		`{"nodes":["a","b"],"nodes":["c"]}`, `{"nodes":"a"}`, `{"labels":{}}`,
		`{"labels":{"a":"b"},"labels":{"c":"d","a":"e"}}`, `{"labels":{"a":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := readJobRequest(data)
		if !ok {
			return
		}
		var want JobRequest
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("decoder accepts input that encoding/json rejects: %v", err)
		}
		if rest := data[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
			t.Fatalf("encoding/json has %q left", rest)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v as from encoding/json", got, want)
		}
	})
}

// BenchmarkDecodeRequest decodes a request with all fields, also with encoding/json.
func BenchmarkDecodeRequest(b *testing.B) {
	q := fullRequest()
	q.MaxEpochs, q.TargetAccuracy, q.Weights = 0, 0, nil // not allowed together with slo and epochs
	data, err := json.Marshal(q)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := DecodeRequest(data, new(JobRequest)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := json.Unmarshal(data, new(JobRequest)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
