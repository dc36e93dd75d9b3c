package schemas_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"courier/schemas"
)

// example returns the example of a message without white space, as programs send it.
func example(b *testing.B, name string, v any) []byte {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		b.Fatal(err)
	}
	data, err := schemas.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// BenchmarkParseSample decodes a message with one sample.
func BenchmarkParseSample(b *testing.B) {
	var s schemas.Sample
	data := example(b, "sample", &s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schemas.ParseAll(s.Subject(), data); err != nil {
			b.Fatal(err)
		}
	}
}
