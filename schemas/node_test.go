package schemas_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"courier/schemas"
)

// An example with one wrong value is rejected with an error that names the field.
func TestValidate_RejectsImplausibleNodes(t *testing.T) {
	sample, started := schemas.Sample{}, schemas.Started{}
	for file, e := range map[string]any{
		"testdata/sample.json":  &sample,
		"testdata/started.json": &started,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, e); err != nil {
			t.Fatal(err)
		}
	}
	sampled := func(cpu string, speed float64) schemas.Event {
		e := sample
		e.CPUModel, e.SpeedOperationsPerSecond = cpu, &speed
		return &e
	}
	told := func(all ...schemas.Hardware) schemas.Event {
		e := started
		e.SetHardware(all)
		return &e
	}
	for _, c := range []struct {
		name  string
		event schemas.Event
		field string // field that the error names; "": no error
	}{
		{"a sample", sampled("x", 1e9), ""},
		{"no speed", sampled("x", 0), "speed_operations_per_second"},
		{"a speed that is no number", sampled("x", math.NaN()), "speed_operations_per_second"},
		{"a speed beyond all", sampled("x", 1e16), "speed_operations_per_second"},
		{"a CPU model of many lines", sampled("x\ny", 1e9), "cpu_model"},
		{"nothing is told", told(), ""},
		{"a node of which nothing is known", told(schemas.Hardware{}), ""},
		{"more entries than nodes", told(schemas.Hardware{}, schemas.Hardware{}), "nodes_cores"},
		{
			"a negative speed", told(schemas.Hardware{Speed: -1}),
			"nodes_speed_operations_per_second",
		},
		{
			"more cores than there can be", told(schemas.Hardware{Cores: schemas.MaxCPUs + 1}),
			"nodes_cores",
		},
		{
			"a CPU model without end",
			told(schemas.Hardware{CPUModel: strings.Repeat("x", 1<<16)}), "nodes_cpu_model",
		},
	} {
		err := c.event.Validate()
		var refused *schemas.Error
		if errors.As(err, &refused) != (c.field != "") || refused != nil &&
			refused.Field != c.field {
			t.Errorf("%s: %v, want an error that names %q", c.name, err, c.field)
		}
	}
}
