package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"courier/importer"
)

// appLog returns the Spark event log of an application that starts at a given second, with two
// executors on two hosts and the given jobs: description, start, end.
func appLog(jobs ...[3]any) string {
	const zero = 1603285048000 // 2020-10-21T12:57:28Z
	lines := []string{
		`{"Event":"SparkListenerLogStart","Spark Version":"2.3.0"}`,
		`{"Event":"SparkListenerEnvironmentUpdate","JVM Information":{},"Spark Properties":{"spark.executor.cores":"2","spark.app.net":"lenet5"},"System Properties":{"sun.java.command":"org.apache.spark.deploy.SparkSubmit --class Train --master yarn train.jar --batchSize 128 --maxEpoch=3 --model /tmp/snapshot"},"Classpath Entries":{}}`,
		fmt.Sprintf(`{"Event":"SparkListenerApplicationStart","App Name":"train","App ID":"application_1_0042","Timestamp":%d,"User":"ada"}`,
			zero),
		fmt.Sprintf(`{"Event":"SparkListenerExecutorAdded","Timestamp":%d,"Executor ID":"1","Executor Info":{"Host":"Worker-1.lan","Total Cores":2,"Log Urls":{}}}`,
			zero+900),
		fmt.Sprintf(`{"Event":"SparkListenerExecutorAdded","Timestamp":%d,"Executor ID":"2","Executor Info":{"Host":"worker-2.lan:40000","Total Cores":2,"Log Urls":{}}}`,
			zero+950),
	}
	for i, j := range jobs {
		lines = append(lines,
			fmt.Sprintf(`{"Event":"SparkListenerJobStart","Job ID":%d,"Submission Time":%d,"Stage Infos":[{"Stage ID":%d,"Submission Time":7}],"Stage IDs":[%d],"Properties":{"spark.job.description":%q}}`,
				i, zero+int(1000*j[1].(float64)), i, i, j[0]),
			fmt.Sprintf(`{"Event":"SparkListenerTaskEnd","Stage ID":%d,"Task Info":{"Task ID":1}}`,
				i),
			fmt.Sprintf(`{"Event":"SparkListenerJobEnd","Job ID":%d,"Completion Time":%d,"Job Result":{"Result":"JobSucceeded"}}`,
				i, zero+int(1000*j[2].(float64))))
	}
	return strings.Join(append(lines,
		fmt.Sprintf(`{"Event":"SparkListenerApplicationEnd","Timestamp":%d}`, zero+60000)),
		"\n") + "\n"
}

func TestReader_Spark(t *testing.T) {
	load := [3]any{"count the samples", 4.0, 6.0}
	epochs := []([3]any){load, {"train epoch 0", 6.5, 16.0}, {
		"validate, epoch 0", 16.0, 17.5,
	}, {"train epoch 1", 18.0, 26.5}, {"train epoch 2", 27.0, 36.25}}
	whole := appLog(epochs...)
	columns := map[string]string{importer.FieldModel: "spark.app.net"}
	for _, c := range []struct {
		name, text string
		o          importer.Options
		want       string
	}{
		{
			"epochs have names", whole, importer.Options{Columns: columns},
			"lenet5 b128 c4 e3 on worker-1-lan+worker-2-lan from 2020-10-21T12:57:28 36.25s finished startup 6.5 1:11" +
				" 2:9 3:9.75\n",
		},
		{
			"a property names its dataset", strings.Replace(whole, `"spark.app.net":"lenet5"`,
				`"spark.app.net":"lenet5","spark.app.data":"mnist"`, 1),
			importer.Options{
				Columns: map[string]string{
					importer.FieldModel:   "spark.app.net",
					importer.FieldDataset: "spark.app.data",
				},
			},
			"lenet5@mnist b128 c4 e3 on worker-1-lan+worker-2-lan from 2020-10-21T12:57:28 36.25s finished startup" +
				" 6.5 1:11 2:9 3:9.75\n",
		},
		{
			"only the whole is known", appLog(load, [3]any{"", 6.5, 36.25}),
			importer.Options{Columns: columns},
			"lenet5 b128 c4 e3 on worker-1-lan+worker-2-lan from 2020-10-21T12:57:28 36.25s finished startup 4\n",
		},
		{
			"nobody says what was trained", whole, importer.Options{},
			"refused: app: model: missing in the source: name its column with --columns model=NAME, or give --model\n",
		},
		{
			"an epoch is missing", appLog(epochs[:4]...), importer.Options{Columns: columns},
			"refused: app: epochs: expected 3 epochs, found 2\n",
		},
		{
			"it was cut", whole[:strings.Index(whole, `{"Event":"SparkListenerApplicationEnd`)],
			importer.Options{Columns: columns},
			"refused: app: ended_at: application application_1_0042 has no SparkListenerApplicationEnd: it is" +
				" running, or its log is truncated\n",
		},
		{
			"it did nothing", appLog(), importer.Options{Columns: columns},
			"refused: app: no job of Spark ended in application application_1_0042\n",
		},
		{
			"it is compressed", "LZ4Block\x15\x00", importer.Options{},
			"refused: app: no SparkListenerApplicationStart: want an uncompressed event log, as" +
				" spark.eventLog.enabled writes it\n",
		},
		{
			"epochs at once", appLog([3]any{"epoch 1", 4.0, 20.0}, [3]any{"epoch 2", 5.0, 19.0}),
			importer.Options{Columns: columns},
			"refused: app: epoch_seconds: epoch 2 ended before the previous epoch: their jobs ran at the same time\n",
		},
		{
			"a job ended before it began", appLog([3]any{"epoch 1", 4.0, 3.0}),
			importer.Options{Columns: columns},
			"refused: app: ended_at: job 0 of Spark ended 1000 ms before it was submitted\n",
		},
	} {
		c.o.Now = now
		if got := brief(read(t, c.o, importer.FormatSpark, "app", c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if got := brief(read(t, importer.Options{Columns: columns}, importer.FormatSpark, "app",
		strings.ReplaceAll(whole, "JobSucceeded", "JobFailed"))); !strings.Contains(got,
		"the run has failed, and no epoch has a time") {
		t.Errorf("application with failed jobs = %s, want a failed run without epoch times", got)
	}

	// A rolling log is read in the order of the numbers of its files.
	cut := strings.Index(whole, `{"Event":"SparkListenerJobStart","Job ID":2`)
	r := importer.New(importer.Options{Columns: columns})
	rolling := fstest.MapFS{
		"events_2_app":  {Data: []byte(whole[:cut])},
		"events_10_app": {Data: []byte(whole[cut:])},
		"appstatus_app": {},
	}
	if err := r.Directory(importer.FormatAuto, "eventlog_v2_app", rolling); err != nil {
		t.Fatal(err)
	}
	if got := brief(r.Finish()); got != "lenet5 b128 c4 e3 on worker-1-lan+worker-2-lan from 2020-10-21T12:57:28"+
		" 36.25s finished startup 6.5 1:11 2:9 3:9.75\n" {
		t.Errorf("rolling log = %s, want three epochs of lenet5", got)
	}
}
