package output

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tables are those of the CSV loggers of Keras and Lightning.
func TestNewLog_ReadsTablesAndJSON(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{
			"Keras",
			"epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,1.5,0.6,1.2\n1,0.7,0.9,0.75,0.8\n",
			[]string{"0 0 1.5 0.6", "1 0 0.9 0.75"},
		},
		{
			"Keras without validation",
			"epoch,accuracy,loss\n0,0.5,1.5\n1,0.7,0.9\n",
			[]string{"0 0 1.5 0.5", "1 0 0.9 0.7"},
		},
		{
			"Lightning",
			"epoch,step,train_loss,val_acc,val_loss\n0,49,1.5,,\n0,93,,0.6,1.2\n1,149,0.9,,\n1,187,,0.75,0.8\n",
			[]string{"0 0 1.5 0.6", "1 0 0.9 0.75"},
		},
		{
			"Lightning, with the loss of the epoch behind the validation",
			"epoch,step,loss_epoch,loss_step,val_acc\n0,49,,1.1,\n0,93,,,0.61\n0,93,1.3,,\n1,149,,0.9,\n" +
				"1,187,,,0.72\n1,187,1.0,,\n",
			[]string{"0 0 1.3 0.61", "1 0 1 0.72"},
		},
		{
			"semicolons, the epoch last",
			"loss;val_acc;epoch\n0.5;91.5;1\n0.4;93;2\n",
			[]string{"1 0 0.5 0.915", "2 0 0.4 0.93"},
		},
		{
			"ultralytics, whose time is since the start",
			"epoch, time, train/box_loss, metrics/mAP50(B), metrics/mAP50-95(B)\n1,61.2,1.2,0.61,0.41\n" +
				"2,122.4,1.1,0.62,0.42\n3,183.6,1.0,0.63,0.43\n",
			[]string{"1 0 1.2 0.61", "2 0 1.1 0.62", "3 0 1 0.63"},
		},
		{
			"a row without a time", "epoch,epoch_time,val_acc\n1,61,\n1,0,0.5\n2,62,0.6\n",
			[]string{"1 61 - 0.5", "2 62 - 0.6"},
		},
		{
			"times of the epochs by their name, and units in names",
			"epoch,epoch_time_ms,val_acc (%)\n1,61000,0.5\n2,62000,1.5\n",
			[]string{"1 61 - 0.005", "2 62 - 0.015"},
		},
		{"times of steps", `{"epoch":1,"data_time":0.1,"time":0.3}` + "\n" + `{"epoch":2,"data_time":0.1,"time":0.3}` + "\n",
			[]string{"1 0 - -", "2 0 - -"}},
		{"a row per run, with the last epoch", "Name,State,User,Created,Sweep,epoch,loss,val_acc\n" +
			"sun-1,finished,ada,2024-03-05,s1,9,0.23,0.91\nsun-2,crashed,ada,2024-03-06,s1,1,0.29,0.90\n", nil},
		{"a row per run", "model,epochs,val_acc\nm,10,0.5\nm,20,0.6\n", nil},
		{"JSON lines", `{"epoch":1,"val_acc":0.5}` + "\n" + `{"epoch":2,"val_acc":0.6}` + "\n",
			[]string{"1 0 - 0.5", "2 0 - 0.6"}},
		{"JSON lines of batches", `{"mode":"train","epoch":1,"iter":50,"loss":0.9}` + "\n" +
			`{"mode":"train","epoch":1,"iter":100,"loss":0.8}` + "\n" +
			`{"mode":"val","epoch":1,"iter":10,"bbox_mAP":0.4}` + "\n" +
			`{"mode":"train","epoch":2,"iter":50,"loss":0.7}` + "\n", []string{"1 0 0.8 0.4", "2 0 0.7 -"}},
		{"JSON lines of steps", `{"epoch":1,"step":50,"loss":0.9}` + "\n" + `{"epoch":1,"step":99,"loss":0.8}` + "\n" +
			`{"epoch":2,"step":50,"loss":0.7}` + "\n" + `{"epoch":2,"step":99,"loss":0.6}` + "\n",
			[]string{"1 0 0.8 -", "2 0 0.6 -"}},
		{"a comma in quotes", "epoch,note,val_acc\n1,\"a, b\",0.5\n2,\"\",0.6\n",
			[]string{"1 0 - 0.5", "2 0 - 0.6"}},
		{"no epochs", "step,loss\n1,0.5\n2,0.4\n", nil},
		{"bad rows", "epoch,loss\nx,1\n-1,1\n1e9,1\n\"\n1\n2,nan\n", []string{"2 0 - -"}},
	} {
		g := NewLog()
		reports := g.Write([]byte(c.text), noon)
		if diff := cmp.Diff(c.want, format(append(reports, g.Close(noon)...))); diff != "" {
			t.Errorf("%s: reports (-want +got):\n%s", c.name, diff)
		}
	}
}

// No table crashes the reader.
func FuzzLog(f *testing.F) {
	f.Add("epoch,step,loss,val_acc\n0,1,2,0.5\n1,2,,0.6\n")
	f.Add("loss;epoch\n\"a\n0;1\n")
	f.Fuzz(func(t *testing.T, text string) {
		g := NewLog()
		reports := append(g.Write([]byte(text), noon), g.Close(noon)...)
		for _, r := range reports {
			if r.Accuracy != nil && !(*r.Accuracy >= 0 && *r.Accuracy <= 1) {
				t.Fatalf("report %+v, want an accuracy of 0 to 1", r)
			}
		}
	})
}
