package importer_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"courier/importer"
)

// store returns a file store of MLflow with one run in the format of its client. change may change
// the files; paths are relative to the run.
func store(change map[string]string) fstest.MapFS {
	const zero = 1721450907000 // 2024-07-20T04:48:27Z
	files := map[string]string{
		"meta.yaml": fmt.Sprintf(
			"artifact_uri: file:///home/ada/mlruns/6067/1c6b/artifacts\nend_time: %d\nentry_point_name:"+
				" ''\nexperiment_id: '6067'\nlifecycle_stage: active\nrun_id: 1c6b2d5b\nrun_name:"+
				" wistful-ant-659\nrun_uuid: 1c6b2d5b\nsource_type: 4\nstart_time: %d\nstatus: 3\ntags:"+
				" []\nuser_id: ada\n",
			zero+20000, zero,
		),
		"params/batch_size":   "64",
		"params/model":        "resnet8",
		"params/epochs":       "3",
		"params/num_workers":  "2",
		"tags/mlflow.runName": "wistful-ant-659",
		"metrics/val_accuracy": fmt.Sprintf("%d 0.8 0\n%d 0.85 1\n%d 0.9 2\n", zero+7500,
			zero+12000, zero+16750),
		"metrics/loss": fmt.Sprintf("%d 1.5 0\n%d 0.75 1\n%d 0.5 2\n", zero+7400, zero+11900, zero+16600),
	}
	maps.Copy(files, change)
	dir := fstest.MapFS{
		"0/meta.yaml":          {Data: []byte("experiment_id: '0'\nname: Default\n")},
		"6067/meta.yaml":       {Data: []byte("experiment_id: '6067'\nname: digits\n")},
		".trash/1/2/meta.yaml": {Data: []byte("run_id: gone\n")},
	}
	for name, text := range files {
		if text != "" {
			dir["6067/1c6b2d5b/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return dir
}

func TestReader_MLflow(t *testing.T) {
	const zero = 1721450907000
	meta := string(store(nil)["6067/1c6b2d5b/meta.yaml"].Data)
	const head = "resnet8 b64 c2 e3 on mlruns from 2024-07-20T04:48:27 20s finished"
	for _, c := range []struct {
		name    string
		change  map[string]string
		columns map[string]string
		want    string
	}{
		{
			"a value per epoch: times of arrival", nil, nil,
			head + " accuracy 0.9 1:7.5=0.8 2:4.5=0.85 3:4.75=0.9\n",
		},
		{
			"epochs that say how long they took",
			map[string]string{
				"metrics/epoch_time": fmt.Sprintf("%d 4.25 1\n%d 4.5 2\n%d 4.75 3\n", zero+7500,
					zero+12000, zero+16750),
			},
			nil,
			head + " accuracy 0.9 1:4.25=0.85 2:4.5=0.9 3:4.75\n",
		},
		{
			"only the last accuracy: the whole time",
			map[string]string{
				"metrics/val_accuracy": fmt.Sprintf("%d 0.9 0\n", zero+19000),
				"metrics/loss":         "",
			},
			nil, head + " accuracy 0.9\n",
		},
		{
			"steps are iterations, one per epoch",
			map[string]string{
				"metrics/val_accuracy": fmt.Sprintf("%d 0.8 469\n%d 0.85 938\n%d 0.9 1407\n",
					zero+7500, zero+12000, zero+16750),
				"metrics/loss": "",
			},
			nil,
			head + " accuracy 0.9 1:7.5=0.8 2:4.5=0.85 3:4.75=0.9\n",
		},
		{
			"steps are iterations",
			map[string]string{
				"metrics/val_accuracy": fmt.Sprintf("%d 0.8 100\n%d 0.85 200\n", zero+7500, zero+12000),
			},
			nil,
			"refused: mlruns/6067/1c6b2d5b: accuracy: 2 values from step 100 to 200 are not one per epoch (expected:" +
				" 3): name a metric that is logged each epoch with --columns accuracy=METRIC\n",
		},
		{
			"a metric in a directory, and a parameter of another name",
			map[string]string{
				"metrics/val/top1": fmt.Sprintf("%d 0.5 1\n%d 0.6 2\n%d 0.7 3\n", zero+7500,
					zero+12000, zero+16750),
				"params/lanes": "8",
				"metrics/loss": "",
			},
			map[string]string{
				importer.FieldAccuracy: "val/top1",
				importer.FieldCPUs:     "lanes",
			},
			"resnet8 b64 c8 e3 on mlruns from 2024-07-20T04:48:27 20s finished accuracy 0.7 1:7.5=0.5 2:4.5=0.6" +
				" 3:4.75=0.7\n",
		},
		{
			"a parameter names its dataset", map[string]string{"params/dataset_name": "cifar10"},
			nil,
			strings.Replace(head, "resnet8", "resnet8@cifar10", 1) +
				" accuracy 0.9 1:7.5=0.8 2:4.5=0.85 3:4.75=0.9\n",
		},
		{
			"a tag that the user names is its dataset",
			map[string]string{"tags/corpus": "cifar10", "params/dataset": "ignored"},
			map[string]string{importer.FieldDataset: "corpus"},
			strings.Replace(head, "resnet8", "resnet8@cifar10", 1) +
				" accuracy 0.9 1:7.5=0.8 2:4.5=0.85 3:4.75=0.9\n",
		},
		{
			"fewer epochs than promised", map[string]string{"params/epochs": "10"}, nil,
			"refused: mlruns/6067/1c6b2d5b: epochs: expected 10 epochs, found 3\n",
		},
		{
			"it still runs",
			map[string]string{"meta.yaml": strings.Replace(meta, "status: 3", "status: 1", 1)},
			nil,
			"refused: mlruns/6067/1c6b2d5b: outcome: the run is running: only ended runs can be imported\n",
		},
		{
			"it failed after two epochs",
			map[string]string{
				"meta.yaml":     strings.Replace(meta, "status: 3", "status: 4", 1),
				"params/epochs": "10",
			},
			nil,
			"resnet8 b64 c2 e10 on mlruns from 2024-07-20T04:48:27 20s failed accuracy 0.9 1:7.5=0.8 2:4.5=0.85" +
				" 3:4.75=0.9\n",
		},
		{
			"it was deleted",
			map[string]string{"meta.yaml": strings.Replace(meta, "active", "deleted", 1)}, nil,
			"refused: mlruns/6067/1c6b2d5b: lifecycle_stage: the run was deleted in MLflow\n",
		},
		{
			"all was logged at the end",
			map[string]string{
				"metrics/val_accuracy": fmt.Sprintf("%d 0.8 0\n%[1]d 0.85 1\n%[1]d 0.9 2\n", zero+19000),
			},
			nil,
			"refused: mlruns/6067/1c6b2d5b: epoch: the value of step 1 is not later than the previous one: values" +
				" logged at the end of a run have no epoch times; log a metric epoch_seconds\n",
		},
		{
			"a step twice",
			map[string]string{
				"metrics/val_accuracy": fmt.Sprintf("%d 0.8 0\n%d 0.85 1\n%d 0.9 1\n", zero+7500,
					zero+12000, zero+16750),
			},
			nil,
			"refused: mlruns/6067/1c6b2d5b: accuracy: step 1 was logged twice: the run was restarted, or two runs" +
				" wrote to it\n",
		},
		{
			"an accuracy in percent",
			map[string]string{
				"metrics/val_accuracy": fmt.Sprintf("%d 80 0\n%d 85 1\n%d 90 2\n", zero+7500,
					zero+12000, zero+16750),
			},
			nil,
			"resnet8 b64 c2 e3 on mlruns from 2024-07-20T04:48:27 20s finished accuracy 0.9" +
				" 1:7.5=0.8 2:4.5=0.85 3:4.75=0.9\n",
		},
		{
			"a metric that is none",
			map[string]string{"metrics/val_accuracy": "yesterday 0.8 0\n"}, nil,
			"refused: mlruns/6067/1c6b2d5b: accuracy (metrics/val_accuracy): line 1 is \"yesterday 0.8 0\", want a" +
				" time in milliseconds, a value and a step\n",
		},
	} {
		r := importer.New(importer.Options{
			Columns:  c.columns,
			Now:      now,
			Defaults: map[string]string{importer.FieldCPUs: "2"},
		})
		if err := r.Directory("mlruns", store(c.change)); err != nil {
			t.Fatal(err)
		}
		if got := brief(r.Finish()); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	r := importer.New(importer.Options{})
	if err := r.Directory("elsewhere", fstest.MapFS{"a/b": {}}); err == nil ||
		!strings.Contains(err.Error(), "elsewhere has no run of MLflow") {
		t.Errorf("Directory without a run = %v, want that it has none", err)
	}
}
