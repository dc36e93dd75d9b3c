package importer_test

import (
	"strings"
	"testing"

	"courier/importer"
	"courier/schemas"
)

// checkProperties checks the properties of every result: the counts of accepted and rejected runs
// match, every event is valid, and the same bytes give the same events.
func checkProperties(t *testing.T, read func() (importer.ReadResult, error)) {
	t.Helper()
	a, err := read()
	if err != nil {
		return
	}
	if len(a.Runs)+len(a.Refused) != a.Read+a.Unreadable {
		t.Fatalf("%d accepted and %d rejected runs, want %d in total", len(a.Runs), len(a.Refused), a.Read)
	}
	for _, r := range a.Refused {
		if r.Reason == "" || r.Message == "" || r.File == "" {
			t.Fatalf("rejected without a reason or a position: %+v", r)
		}
	}
	text := func(f importer.ReadResult) string {
		var b strings.Builder
		for _, r := range f.Runs {
			for _, e := range r.Events() {
				if err := e.Validate(); err != nil {
					t.Fatalf("%s: %v", e.ID(), err)
				}
				b.WriteString(e.ID() + "\n")
			}
			end := schemas.EndedID(r.JobID, r.Number, r.Outcome)
			if !strings.HasSuffix(b.String(), end+"\n") {
				t.Fatalf("%s is not the last event of its run", end)
			}
		}
		return b.String()
	}
	b, err := read()
	if err != nil || text(a) != text(b) {
		t.Fatalf("reading the same bytes again gives different events (%v):\n%s\n%s", err, text(a), text(b))
	}
}

// FuzzReader reads files, whose content decides the format.
func FuzzReader(f *testing.F) {
	header := strings.Join(importer.SacctFields(), "|") + "\n"
	for _, seed := range []string{
		"who,model,batch,cpus,epochs,time_s,start_time,njobs\nada,m,64,1,10,72.5,2021-03-01,3\n",
		"run;epoch;seconds;val_acc\na;0;2.5;0.8\na;1;2;0.9\n", "\"\n",
		header + "7|m|ada|TIMEOUT|1614592800|1614596400|3600|60|4|gpu[01-3,7]x,b|sbatch t --bs 8 --epochs=2\n",
		header + "7.0|m||COMPLETED|Unknown|Unknown|0||4|a[|\n", "JobID|State|\n1|2\n",
		"03/04/2024 11:00:00;E;1.pbs;user=ada jobname=m start=1614592800 end=1614596400" +
			" Resource_List.walltime=01:00:00 exec_host=n1/0*4+n2/0 Exit_status=0\n",
		"03/04/2024 11:00:00;E;1;start=x\n", pods, `[{"epoch":1,"config":{"batch_size":8},"time":3},{"epoch":2,"time":6}]`,
		`{"run_id":"r","model":"m","batch_size":64,"cpus":2,"epoch_seconds":[2.5,2],"accuracies":[0.8,null]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkProperties(t, func() (importer.ReadResult, error) {
			r := importer.New(importer.Options{
				Since:   since,
				Now:     now,
				Columns: map[string]string{importer.FieldUser: "who"},
				Defaults: map[string]string{
					importer.FieldModel:     "m",
					importer.FieldCPUs:      "2",
					importer.FieldBatchSize: "64",
				},
			})
			err := r.File("a.txt", strings.NewReader(text))
			return r.Finish(), err
		})
	})
}
