package importer_test

import (
	"strings"
	"testing"

	"courier/importer"

	"github.com/google/go-cmp/cmp"
)

// Columns with another case or separators are recognized, similar ones proposed, and equal refusals
// are one message.
func TestSummary_ProposesColumns(t *testing.T) {
	r := importer.New(importer.Options{})
	const text = "Model,BatchSize,CPUs,Epochs,Took seconds,ValAcc,gpu_type,Notes,epochs_done\n" +
		"resnet,32,2,3,120,0.8,V100,a,3\nresnet,64,2,3,100,0.8,V100,b,3\nresnet,128,2,3,90,0.8,V100,c,3\n"
	if err := r.File(importer.FormatCSV, "runs.csv", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	found := r.Finish()
	want := map[string]string{"Took seconds": "duration_seconds", "Notes": "", "epochs_done": ""}
	if diff := cmp.Diff(want, found.Unused); diff != "" {
		t.Errorf("unused columns (-want +got):\n%s", diff)
	}
	if found.Columns["accuracy"] != "ValAcc" {
		t.Errorf("columns %v, want accuracy in ValAcc", found.Columns)
	}
	var out strings.Builder
	if err := importer.NewSummary(found).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"not used  Notes, Took seconds (use --columns duration_seconds=Took seconds?), epochs_done\n",
		"runs.csv:2: duration_seconds: missing in the source: name its column with --columns " +
			"duration_seconds=NAME (and 2 more)\n",
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("the summary lacks %q:\n%s", want, &out)
		}
	}
}

// A proposal needs values that fit and a name of the same thing: a wrong one is worse than none.
func TestReader_ProposesNothingWrong(t *testing.T) {
	const text = ",Name,model_size,num_batches,best_epoch,gpu_time,val_samples,node_num,timestamp,end_time\n" +
		"0,a,12,100,4,300,1000,1,1709287200,5000\n1,b,12,100,5,300,1000,1,1709287300,6000\n"
	for column, field := range read(t, importer.Options{}, importer.FormatCSV, "runs.csv", text).Unused {
		if field != "" || column == "" {
			t.Errorf("column %q: proposed as %q, want nothing", column, field)
		}
	}
}

// The mean duration of the epochs stands for that of the run.
func TestReader_TakesTheTimeOfAnEpoch(t *testing.T) {
	r := importer.New(importer.Options{})
	const text = "model,batch_size,cpus,epochs,time_per_epoch,startup_seconds,start\n" +
		"bert,16,4,3,50.5,10,2026-11-01T10:00:00Z\n"
	if err := r.File(importer.FormatCSV, "runs.csv", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	found := r.Finish()
	if len(found.Runs) != 1 || found.Runs[0].Seconds != 161.5 {
		t.Errorf("runs %+v, refused %v; want one of 161.5 s", found.Runs, found.Refused)
	}
}
