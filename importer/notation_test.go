package importer_test

import (
	"strings"
	"testing"
	"time"

	"courier/importer"
)

// Numbers with a decimal comma, dates that begin with the day or the month, and clocks of twelve hours
// are read as whole columns tell; what nothing tells is refused with the reason.
func TestRead_NotationsOfCountries(t *testing.T) {
	for name, tc := range map[string]struct {
		table string
		want  string // of the first run, or part of the refusal
	}{
		"decimal commas": {"model;batch_size;cpus;epochs;duration_s;val_accuracy;start\n" +
			"m;64;4;10;1.123,5;0,912;2026-02-13\nm;128;4;10;98,25;0,905;2026-02-14\n",
			"from 2026-02-13T00:00:00 1123.5s finished accuracy 0.912"},
		"thousands": {"model,batch_size,cpus,epochs,duration_s,start\nm,64,4,10,\"1,123\",2026-02-13\n",
			"duration_seconds"},
		"day first": {"model,batch_size,cpus,epochs,start,end\nm,64,4,10,03/02/2026 9:00,03/02/2026 10:00\n" +
			"m,32,4,10,13/02/2026 9:00,13/02/2026 11:00\n", "from 2026-02-03T09:00:00 3600s"},
		"points": {"model,batch_size,cpus,epochs,start,end\nm,64,4,10,03.02.2026 9:00,03.02.2026 10:00\n",
			"from 2026-02-03T09:00:00 3600s"},
		"month first": {"model,batch_size,cpus,epochs,start,end\n" +
			"m,64,4,10,02/03/2026 1:00:00 PM,02/13/2026 1:00:00 pm\n", "from 2026-02-03T13:00:00 864000s"},
		"unknown order": {"model,batch_size,cpus,epochs,start,end\nm,64,4,10,03/02/2026 9:00,03/02/2026 10:00\n",
			"may begin with the day or with the month"},
		"contradicting orders": {"model,batch_size,cpus,epochs,start,end\nm,64,4,10,13/02/2026,02/14/2026\n",
			"may begin with the day or with the month"},
	} {
		got := brief(read(t, importer.Options{Zone: time.UTC}, importer.FormatCSV, "runs.csv", tc.table))
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
