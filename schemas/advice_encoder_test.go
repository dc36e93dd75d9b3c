package schemas_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"courier/schemas"
)

// fill sets every field of a value, so that the comparison finds a field that the encoder omits. If
// empty is true, it sets only every other field.
func fill(v reflect.Value, random *rand.Rand, empty bool) {
	if empty && random.IntN(2) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(random.Int64N(4e9), random.Int64N(1e9)).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), random, empty)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), random, false)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+random.IntN(3), 4))
		for i := range v.Len() {
			fill(v.Index(i), random, empty)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range random.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, random, false)
			fill(value, random, false)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString([]string{
			"digits-mlp", `"quoted"`, "a<b>&c\\", "zwölf\n", "\xff", "",
		}[random.IntN(6)])
	case reflect.Float64:
		rounded := math.Round(math.Exp(40*random.Float64()-14)*1e6) / 1e6
		v.SetFloat([]float64{
			0.1, 1, 1e-9, 1e22, -2.5, 0.000001, 0.05, 999999999.999999, 1e15, math.Copysign(0, -1),
			math.Pi, rounded, -rounded, math.Nextafter(rounded, 0),
		}[random.IntN(14)])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1 + uint64(random.IntN(1e6)))
	}
}

func TestMarshal_EncodesAdviceLikeEncodingJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		a := &schemas.Advice{}
		if n > 0 {
			fill(reflect.ValueOf(a).Elem(), random, n > 200)
		}
		if len(a.Alternatives) > 0 && n%2 == 0 { // like every published advice
			chosen := a.Alternatives[n%len(a.Alternatives)]
			a.Chosen = &chosen
		}
		want, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := schemas.Marshal(a); err != nil || string(got) != string(want) {
			t.Fatalf("Marshal = %v\n%s\nwant\n%s", err, got, want)
		}
		if got, err := schemas.Append([]byte("before"), a); err != nil ||
			string(got) != "before"+string(want) {
			t.Fatalf("Append = %v\n%s\nwant\nbefore%s", err, got, want)
		}
	}
	nan := math.NaN()
	if _, err := schemas.Marshal(&schemas.Advice{Confidence: nan}); err == nil {
		t.Error("Marshal of NaN succeeded")
	}
	if got, err := schemas.Append([]byte("before"), &schemas.Receipt{Sequence: 7}); err != nil ||
		string(got) != `before{"sequence":7}` {
		t.Errorf("Append = %s, %v, want the receipt after the prefix", got, err)
	}
}
