package importer_test

import (
	"testing"

	"courier/importer"
)

func TestReader_JSONLines(t *testing.T) {
	const begin = `{"run_id":"r1","model":"m","batch_size":64,"cpus":2,"started_at":"2024-05-01T10:00:00Z",`
	for _, c := range []struct {
		name, text, want string
	}{
		{
			"epochs, and where it was",
			begin + `"epochs":3,"epoch_seconds":[2.5,2,2.25],"accuracies":[0.8,null,0.9],"losses":[1,0.5,0.25],"nodes":["Worker 1","w2"],"startup_seconds":4}`,
			"m b64 c2 e3 on worker-1+w2 from 2024-05-01T10:00:00 10.75s finished startup 4 accuracy 0.9 1:2.5=0.8 2:2" +
				" 3:2.25=0.9\n",
		},
		{
			"a dataset that is no text",
			begin + `"dataset":"cifar\u000010","epochs":3,"duration_seconds":9.5}`,
			"refused: runs.jsonl:1: dataset: \"cifar\\x0010\" contains a character that is not printable\n",
		},
		{
			"more than promised", begin + `"epochs":1,"epoch_seconds":[2.5,2]}`,
			"refused: runs.jsonl:1: epochs: expected 1 epochs, found 2: epochs of another run are among them\n",
		},
		{
			"an epoch without time", begin + `"epoch_seconds":[2.5,0]}`,
			"refused: runs.jsonl:1: epoch_seconds: the time of epoch 2 is not above 0\n",
		},
		{
			"more accuracies than epochs", begin + `"epoch_seconds":[2.5],"accuracies":[0.5,0.6]}`,
			"refused: runs.jsonl:1: accuracies: 2 values, but 1 epochs have a time\n",
		},
		{
			"less time than its epochs", begin + `"duration_seconds":3,"epoch_seconds":[2.5,2]}`,
			"refused: runs.jsonl:1: duration_seconds: the run took 3 s, but its start-up and epochs took 4.5 s\n",
		},
		{
			"a field that is none", begin + `"epochs":3,"duration_seconds":9.5,"acuracy":0.9}`,
			"m b64 c2 e3 on runs from 2024-05-01T10:00:00 9.5s finished\n",
		},
		{
			"fields in an object, and a row per epoch",
			`{"trial_id":"a","epoch":1,"time_this_iter_s":4.5,"timestamp":1614592804,"cpus":2,"config":{"batch_size":64},"model":"m"}` + "\n" +
				`{"trial_id":"a","epoch":2,"time_this_iter_s":4.25,"timestamp":1614592808,"cpus":2,"config":{"batch_size":64},"model":"m"}`,
			"m b64 c2 e2 on runs from 2021-03-01T09:59:59.25 8.75s finished 1:4.5 2:4.25\n",
		},
		{
			"flags in a list, and times in words",
			`{"JOBID":"5","STAT":"DONE","spec":{"container":{"args":["--epochs=3","--batch-size=64"]}},"model":"m","cpus":2,` +
				`"properties":{"StartTimeUtc":"2024-05-01T10:00:00Z"},"RUN_TIME":"60 second(s)"}`,
			"m b64 c2 e3 on runs from 2024-05-01T10:00:00 60s finished\n",
		},
		{
			"a command of the user, and a stop",
			`{"jobId":"5","status":"SUCCEEDED","UserCommand":"python a.py --epochs 3 --batch-size 64","model":"m","cpus":2,` +
				`"startedAt":1714557600000,"stoppedAt":1714557660000}`,
			"m b64 c2 e3 on runs from 2024-05-01T10:00:00 60s finished\n",
		},
		{
			"a document",
			"{\n\"per_device_train_batch_size\": 8, \"num_train_epochs\": 2, \"model\": \"m\", \"cpus\": 2,\n" +
				`"log_history": [{"epoch": 0.5, "loss": 2}, {"epoch": 1.0, "eval_accuracy": 0.5}, ` +
				`{"epoch": 2.0, "eval_accuracy": 0.75}, {"epoch": 2.0, "train_runtime": 80}]}`,
			"m b0 c2 e2 on runs from 2020-10-21T00:00:00 80s finished accuracy 0.75\n",
		},
		{
			"a list of runs with objects",
			"{\"experiment\": \"e\",\n" + `"runs":[{"name":"a","config":{"model":"m","batch_size":8,"epochs":3,"cpus":2},"time":9.5}]}`,
			"m b8 c2 e3 on runs from 2020-10-21T00:00:00 9.5s finished\n",
		},
		{
			"lists of one run", begin + `"epochs":3,"duration_seconds":9.5,"nodes":["a","b"],"tags":["x","y"]}`,
			"m b64 c2 e3 on a+b from 2024-05-01T10:00:00 9.5s finished\n",
		},
		{
			"a list of phases, whose times are not those of runs",
			`{"model":"m","batch_size":8,"cpus":2,"epochs":5,"phases":[{"name":"load","time":3.5},{"name":"train","time":9}]}`,
			"refused: runs.jsonl:1: duration_seconds: missing in the source: name its column with --columns" +
				" duration_seconds=NAME\n",
		},
		{
			"a document with a number that JSON does not have",
			"[\n" + begin + "\"epochs\":3,\"duration_seconds\":9.5,\n\"reward\":NaN}]",
			"m b64 c2 e3 on runs from 2024-05-01T10:00:00 9.5s finished\n",
		},
		{
			"a number that JSON does not have", begin + `"epochs":3,"duration_seconds":9.5,"reward":NaN,"l":[-Infinity]}`,
			"m b64 c2 e3 on runs from 2024-05-01T10:00:00 9.5s finished\n",
		},
		{
			"no JSON, and the next line", "{\n" + begin + `"epochs":3,"duration_seconds":9.5}`,
			"m b64 c2 e3 on runs from 2024-05-01T10:00:00 9.5s finished\nrefused: runs.jsonl:1: not a JSON object:" +
				" unexpected end of JSON input\n",
		},
	} {
		if got := brief(read(t, importer.Options{Now: now, Since: since}, "runs.jsonl", c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// pods are two pods, of which one has a second container, and a job with four pods, each with a batch of its own, as
// kubectl get -o json prints them.
const pods = `{"kind":"List","items":[
 {"kind":"Pod","metadata":{"name":"train-0","labels":{"job-name":"train"}},
  "spec":{"nodeName":"n1","containers":[
   {"name":"log","args":["--flush"],"resources":{"requests":{"cpu":"100m"}}},
   {"name":"main","command":["python","t.py"],"args":["--batch-size","64","--epochs=5"],"resources":{"requests":{"cpu":"3500m"}}}]},
  "status":{"phase":"Succeeded","containerStatuses":[{"name":"main","state":{"terminated":
   {"exitCode":0,"startedAt":"2021-03-01T10:00:00Z","finishedAt":"2021-03-01T11:00:00Z"}}}]}},
 {"kind":"Pod","metadata":{"name":"train-1","labels":{}},
  "spec":{"nodeName":"n1","containers":[{"name":"main","args":["-b","8","-e","2"],"resources":{"limits":{"cpu":"4"}}}]},
  "status":{"phase":"Running","startTime":"2021-03-01T10:00:00Z"}},
 {"kind":"PyTorchJob","metadata":{"name":"ddp"},"spec":{"pytorchReplicaSpecs":{
   "Master":{"replicas":1,"template":{"spec":{"containers":[{"name":"main","args":["-b","8","-e","2"]}]}}},
   "Worker":{"replicas":3,"template":{"spec":{"containers":[{"name":"main","args":["-b","8","-e","2"]}]}}}}},
  "status":{"startTime":"2021-03-01T10:00:00Z","completionTime":"2021-03-01T10:10:00Z",
   "conditions":[{"type":"Running","status":"False"},{"type":"Succeeded","status":"True"}]}},
 {"kind":"Pod","metadata":{"name":"rank-0"},"spec":{"nodeName":"n2","containers":[
   {"name":"main","args":["-b","8","-e","2"],"env":[{"name":"WORLD_SIZE","value":"4"}]}]},
  "status":{"phase":"Succeeded","containerStatuses":[{"name":"main","state":{"terminated":
   {"exitCode":0,"startedAt":"2021-03-01T11:00:00Z","finishedAt":"2021-03-01T11:00:05Z"}}}]}}]}`

func TestReader_Pods(t *testing.T) {
	const want = "train b64 c4 e5 on n1 from 2021-03-01T10:00:00 3600s finished\n" +
		"ddp b0 c8 e2 on pods from 2021-03-01T10:00:00 600s finished\n" +
		"rank-0 b0 c8 e2 on n2 from 2021-03-01T11:00:00 5s finished\n" +
		"refused: pods.json: outcome (status.phase): the run is running: only ended runs can be imported\n"
	o := importer.Options{Now: now, Defaults: map[string]string{importer.FieldCPUs: "8"}}
	if got := brief(read(t, o, "pods.json", pods)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
