package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// valueFiller sets every field of a value, including unexported ones, to a different value that is
// not zero.
type valueFiller struct{ n int64 }

func (f *valueFiller) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(f.n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprint("text-", f.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		f.fillStruct(v)
	default:
		panic(fmt.Sprintf("no value for a %s", v.Type()))
	}
}

func (f *valueFiller) fillStruct(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_790_000_000+f.n, 0).UTC()))
		return
	}
	if v.Type() == reflect.TypeFor[schemas.Ratio]() {
		v.Set(reflect.ValueOf(schemas.RatioOf(1 / float64(f.n))))
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == "-" {
			continue // derived from the message
		}
		field := v.Field(i)
		f.fill(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
	}
}

// filled returns a value without zero fields.
func filled[T any]() T {
	var v T
	(&valueFiller{}).fill(reflect.ValueOf(&v).Elem())
	return v
}

// viaJSON encodes and decodes a value.
func viaJSON[T any](t *testing.T, state T) T {
	t.Helper()
	text, err := json.Marshal(&state)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// A field that is added to the state but not to the snapshot fails this test.
func TestSnapshot_HasEveryField(t *testing.T) {
	job := filled[Job]()
	job.State = schemas.StateRunning
	unexported := cmp.Exporter(func(reflect.Type) bool { return true })
	tried, node := filled[Model](), filled[Node]()
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"Job", viaJSON(t, job), job},
		{"model", viaJSON(t, tried), tried},
		{"Node", viaJSON(t, node), node},
	} {
		if diff := cmp.Diff(c.want, c.got, unexported); diff != "" {
			t.Errorf("%s differs after encoding and decoding (-before +after):\n%s", c.name, diff)
		}
	}
}

// Every field of the state is stored in the snapshot or derived from it.
func TestSnapshot_HasEveryPartOfTheCluster(t *testing.T) {
	saved := []string{
		"jobs", "order", "ends", "nodes", "fleet", "models", "uses",
	}
	derived := []string{"limits", "ended", "running", "waiting", "arrivals"}
	for field := range reflect.TypeFor[Cluster]().Fields() {
		if !slices.Contains(saved, field.Name) && !slices.Contains(derived, field.Name) {
			t.Errorf("field %s: add it to the snapshot and to this test, and change SnapshotVersion", field.Name)
		}
	}
}
