package schemas_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// samplesOf returns count copies of the example sample with different numbers.
func samplesOf(t testing.TB, count int) (all []*schemas.Sample) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sample.json"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range count {
		s := &schemas.Sample{}
		if err := json.Unmarshal(text, s); err != nil {
			t.Fatal(err)
		}
		s.Number = uint64(n + 1)
		s.EventID = schemas.SampleID(s.Node, s.BootID, s.Number)
		all = append(all, s)
	}
	return all
}

func TestParseAll_ReadsOneOrSeveral(t *testing.T) {
	three := samplesOf(t, 3)
	subject := three[0].Subject()
	array, err := schemas.Marshal(three)
	if err != nil {
		t.Fatal(err)
	}
	one, err := schemas.Marshal(three[0])
	if err != nil {
		t.Fatal(err)
	}
	wrong := func(old, new string) string { return strings.Replace(string(array), old, new, 1) }
	for _, c := range []struct {
		name, subject, data, reason string
		want                        int
	}{
		{"one", subject, string(one), "", 1},
		{"several", subject, string(array), "", 3},
		{"of one", subject, "[" + string(one) + "]", "", 1},
		{"spaced", subject, " [\n" + string(one) + "\n,\t" + string(one) + "]\n", "", 2},
		{
			"not what collectors write", subject,
			"[" + strings.Replace(string(one), `"node"`, `"N\u006fde"`, 1) + "]", "", 1,
		},
		{"none", subject, "[]", "has no sample", 0},
		{
			"the second of another node", subject,
			wrong(`,{"event_id":"`+three[1].EventID,
				`,{"node":"other","event_id":"`+three[1].EventID),
			"", 3,
		}, // the last value of a repeated key is used, as in encoding/json
		{"one out of range", subject, wrong(`"number":2`, `"number":-2`), "sample 2", 0},
		{"no cores", subject, wrong(`"cores":`, `"cores":0,"no":`), "sample 1", 0},
		{"cut", subject, string(array[:len(array)-1]), "not JSON", 0},
		{"something behind", subject, string(array) + "{}", "not JSON", 0},
		{"in an array", subject, "[" + string(array) + "]", "sample 1", 0},
		{
			"no samples", schemas.JobSubject("a", schemas.EventEpoch), string(array),
			"got a JSON array", 0,
		},
		{"no subject", "node.a.b", string(array), "no event has the subject", 0},
		{
			"too long", subject,
			"[" + strings.Repeat(" ", schemas.MaxMessageBytes) + string(one) + "]", "limit is", 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := schemas.ParseAll(c.subject, []byte(c.data))
			if len(got) != c.want || (err == nil) != (c.reason == "") || err != nil &&
				!strings.Contains(err.Error(), c.reason) {
				t.Fatalf("%d events and %v, want %d and an error of %q", len(got), err, c.want,
					c.reason)
			}
			if c.name == "several" {
				for i, e := range got {
					if diff := cmp.Diff(three[i], e); diff != "" {
						t.Errorf("sample %d (-want +got):\n%s", i+1, diff)
					}
				}
			}
		})
	}
}

// An array has the events of its elements.
func FuzzParseAll(f *testing.F) {
	array, err := schemas.Marshal(samplesOf(f, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(array)
	f.Add([]byte(`[{}]`))
	f.Add([]byte(`[ null , 1]`))
	subject := samplesOf(f, 1)[0].Subject()
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := schemas.ParseAll(subject, data)
		if err != nil {
			return
		}
		var texts []json.RawMessage
		if json.Unmarshal(data, &texts) != nil {
			texts = []json.RawMessage{data}
		}
		if len(texts) != len(all) {
			t.Fatalf("got %d events from %d JSON texts, want the same number", len(all), len(texts))
		}
		for i, text := range texts {
			e, err := schemas.Parse(subject, text)
			if diff := cmp.Diff(e, all[i]); err != nil || diff != "" {
				t.Fatalf("event %d: %v\n%s", i+1, err, diff)
			}
		}
	})
}
