package schemas

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// fullSample returns a sample with all fields set.
func fullSample() *Sample {
	s := &Sample{
		Stamp: Stamp{
			EventID: "node-a/boot/7",
			At:      time.Date(2026, 11, 20, 1, 2, 3, 456789, time.UTC),
		},
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i).Addr().Interface().(type) {
		case **float64:
			x := 1.5e9 / float64(i+1)
			*f = &x
		case *float64:
			*f = 2
		case *string:
			*f = "boot"
		case *uint64:
			*f = 7
		case *uint32:
			*f = 8
		}
	}
	return s
}

// The decoder reads every field of a sample without encoding/json.
func TestReadSample_DecodesEveryField(t *testing.T) {
	want := fullSample()
	figures := 0
	v := reflect.ValueOf(want).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set", v.Type().Field(i).Name)
		}
		if _, is := v.Field(i).Interface().(*float64); is {
			figures++
		}
	}
	if figures != optionalSampleFields {
		t.Errorf("a sample has %d optional fields, but optionalSampleFields is %d",
			figures, optionalSampleFields)
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := readSample(data); !reflect.DeepEqual(got, want) {
		t.Errorf("readSample() = %+v, want the encoded sample\n%s", got, data)
	}
}

// The decoder returns the result of encoding/json, or nil.
func FuzzReadSample(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("testdata", "sample.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, s := range []string{
		`{}`, ` { "cpu_ratio" : -0.0e+0 , "number":18446744073709551615 } `, `{"number":01}`,
		`{"number":1.0}`, `{"number":1e3}`, `{"cores":4294967296}`, `{"interval_seconds":1e999}`,
		`{"interval_seconds":.5}`, `{"interval_seconds":1.}`, `{"interval_seconds":-}`,
		`{"interval_seconds":0x1p-2}`, `{"interval_seconds":1_000}`, `{"node":"a\u0062"}`,
		`{"node":"é"}`, `{"node":null}`,
		`{"Node":"a"}`, `{"node":"a","node":"b"}`,
		`{"cpu_ratio":null}`, `{"cpu_ratio":1,"cpu_ratio":2}`,
		`{"at":"2026-11-20T01:02:03+01:00"}`, `{"at":"2026-11-20 01:02:03Z"}`, `{"node":"a",}`,
		`{"node":"a"}{}`,
		`{"event_id":"a/b/1","node":"a","boot_id":"b"}`,
		`{"event_id":"a/","node":"","boot_id":"/"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := readSample(data)
		if got == nil {
			return
		}
		var want Sample
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("decoder accepts input that encoding/json rejects: %v", err)
		}
		if !reflect.DeepEqual(got, &want) {
			t.Fatalf("got %+v, want %+v as from encoding/json", got, want)
		}
	})
}

// BenchmarkParseSample decodes a sample with all fields, also with encoding/json.
func BenchmarkParseSample(b *testing.B) {
	s := fullSample()
	s.Node, s.IOWaitRatio = "node-a", nil
	for _, ratio := range []**float64{
		&s.CPURatio, &s.CPUPressureRatio, &s.IOPressureRatio, &s.IOFullPressureRatio,
		&s.MemoryPressureRatio, &s.MemoryFullPressureRatio, &s.DiskBusyRatio,
	} {
		x := 0.123456789
		*ratio = &x
	}
	data, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(s.Subject(), data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := json.Unmarshal(data, new(Sample)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
