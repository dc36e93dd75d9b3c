package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
			"times that fall are of the epochs",
			"epoch,time,val_acc\n1,61,0.5\n2,60,0.6\n3,62,0.7\n",
			[]string{"1 0 - 0.5", "2 60 - 0.6", "3 62 - 0.7"},
		},
		{
			"a row without a time", "epoch,epoch_time,val_acc\n1,61,\n1,0,0.5\n2,62,0.6\n",
			[]string{"1 61 - 0.5", "2 62 - 0.6"},
		},
		{
			"times of the epochs by their name", "epoch,epoch_time,val_acc\n1,61,0.5\n2,62,0.6\n",
			[]string{"1 61 - 0.5", "2 62 - 0.6"},
		},
		{"JSON lines", `{"epoch":1,"val_acc":0.5}` + "\n" + `{"epoch":2,"val_acc":0.6}` + "\n",
			[]string{"1 0 - 0.5", "2 0 - 0.6"}},
		{"JSON lines of batches", `{"mode":"train","epoch":1,"iter":50,"loss":0.9}` + "\n" +
			`{"mode":"train","epoch":1,"iter":100,"loss":0.8}` + "\n" +
			`{"mode":"val","epoch":1,"iter":10,"bbox_mAP":0.4}` + "\n" +
			`{"mode":"train","epoch":2,"iter":50,"loss":0.7}` + "\n", []string{"1 0 0.8 0.4", "2 0 0.7 -"}},
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

// The event files are written by tensorboardX, and by TensorBoard with the tags of Keras. Each piece
// of a file may arrive alone.
func TestTensorBoard_ReadsEventFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string
		at   []float64 // seconds of the epochs' ends
	}{
		{"torch", []string{"1 0 0.25 0.5", "2 0 0.125 0.6", "3 0 0.0833333 0.7"}, []float64{1.75, 3.75, 5.75}},
		{"keras", []string{"1 0 0.9 0.55", "2 0 0.8 0.65"}, []float64{0, 3}},
	} {
		for _, pieces := range []int{1, 2, 7, 100} {
			b := NewTensorBoard()
			var reports []EpochReport
			for k := range pieces {
				for _, file := range eventFiles(t, filepath.Join("testdata", "tensorboard", c.name)) {
					data, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					b.Write(file, data[k*len(data)/pieces:(k+1)*len(data)/pieces])
				}
				reports = append(reports, b.Take(k == pieces-1)...)
			}
			for i := range reports {
				for _, v := range []*float64{reports[i].Loss, reports[i].Accuracy} {
					*v = float64(int(*v*1e7+0.5)) / 1e7 // single precision
				}
				if len(reports) > len(c.at) {
					break
				}
				at := reports[i].At.Sub(time.Unix(1_790_000_000, 0)).Seconds()
				if at != c.at[i] {
					t.Errorf("%s: epoch %d ended after %g s, want %g s", c.name, i+1, at, c.at[i])
				}
			}
			if diff := cmp.Diff(c.want, format(reports)); diff != "" {
				t.Errorf("%s in %d pieces (-want +got):\n%s", c.name, pieces, diff)
			}
		}
	}
}

func eventFiles(t *testing.T, dir string) []string {
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "tfevents") {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no event files in %s: %v", dir, err)
	}
	return all
}

// No bytes of a file crash the reader, and its memory is bounded.
func FuzzTensorBoard(f *testing.F) {
	for _, name := range []string{"torch/events.out.tfevents.1", "keras/train/events.out.tfevents.1"} {
		data, err := os.ReadFile(filepath.Join("testdata", "tensorboard", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := NewTensorBoard()
		b.Write("logs/validation/a", data)
		reports := b.Take(true)
		for i, r := range reports {
			if r.Epoch != uint32(i+1) || r.Accuracy != nil && !(*r.Accuracy >= 0 && *r.Accuracy <= 1) {
				t.Fatalf("report %d = %+v, want consecutive epochs and accuracies of 0 to 1", i, r)
			}
		}
		if n := len(b.files["logs/validation/a"].partial); n > maxRecordBytes+16 {
			t.Fatalf("%d bytes are kept, want at most %d", n, maxRecordBytes+16)
		}
	})
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
