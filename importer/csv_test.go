package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/importer"
	"courier/schemas"
)

// since is the start time of runs without timestamps.
var since = time.Date(2020, 10, 21, 0, 0, 0, 0, time.UTC)

// now is later than all runs of these tests.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// read reads one file.
func read(t testing.TB, o importer.Options, name, text string) importer.ReadResult {
	t.Helper()
	r := importer.New(o)
	if err := r.File(name, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return r.Finish()
}

// brief formats the main fields of a result: a line per run, and then the rejected runs.
func brief(f importer.ReadResult) string {
	var b strings.Builder
	for _, r := range f.Runs {
		s := &r.Setting
		name := s.Model
		if s.Dataset != "" {
			name += "@" + s.Dataset
		}
		fmt.Fprintf(&b, "%s b%d c%d e%d on %s from %s %gs %s", name, s.BatchSize, s.CPUs, s.Epochs,
			strings.Join(s.Nodes, "+"), r.StartedAt.Format("2006-01-02T15:04:05.999"), r.Seconds,
			r.Outcome)
		if r.Done > 0 && r.Done != s.Epochs {
			fmt.Fprintf(&b, " after %d", r.Done)
		}
		if r.Beside > 0 {
			fmt.Fprintf(&b, " beside %d", r.Beside)
		}
		if r.Startup != nil {
			fmt.Fprintf(&b, " startup %g", *r.Startup)
		}
		if r.Accuracy != nil {
			fmt.Fprintf(&b, " accuracy %g", *r.Accuracy)
		}
		if r.Limit > 0 {
			fmt.Fprintf(&b, " limit %g", r.Limit)
		}
		if r.Reason != "" {
			fmt.Fprintf(&b, " because %s", r.Reason)
		}
		if r.NodeModel != "" {
			fmt.Fprintf(&b, " of %s", r.NodeModel)
		}
		for i := range r.Epochs {
			fmt.Fprintf(&b, " %d:%.4g", r.Epochs[i].Number, r.Epochs[i].Seconds)
			if a := r.Epochs[i].Accuracy; a != nil {
				fmt.Fprintf(&b, "=%g", *a)
			}
		}
		b.WriteString("\n")
	}
	for _, r := range f.Refused {
		fmt.Fprintf(&b, "refused: %s\n", r)
	}
	return b.String()
}

// utf16 encodes a text of ASCII as spreadsheets do.
func utf16(text string) string {
	return "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
}

func TestReader_CSV(t *testing.T) {
	for _, c := range []struct {
		name, text string
		change     func(*importer.Options)
		want       string
	}{
		{
			"a time in minutes without its unit",
			"model,batch,cpus,start,end,duration\nm,64,1,2020-10-21T10:00:00Z,2020-10-21T10:05:10Z,5.2\n",
			nil,
			"refused: runs.csv:2: duration_seconds (duration): 5.2 is in minutes or hours, because start and " +
				"end are" +
				" 310 s apart: put the unit into the name of the column, as in \"duration (min)\"\n",
		},
		{
			"columns aligned by blanks",
			"model  batch  cpus  seconds\nm         64     2    100.5\nm        128     2    80.25\n", nil,
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 100.5s finished\n" +
				"m b128 c2 e10 on runs from 2020-10-21T00:01:41.5 80.25s finished\n",
		},
		{
			"units behind words in capitals",
			"model,batch,cpus,startTimeMillis,durationMillis\nm,64,2,1614592800000,100500\n", nil,
			"m b64 c2 e10 on runs from 2021-03-01T10:00:00 100.5s finished\n",
		},
		{
			"states that a column of failures explains",
			"model,batch,cpus,seconds,sys/state,sys/failed\nm,64,2,100.5,Inactive,False\n" +
				"m,64,2,80.25,Inactive,True\nm,64,2,70.5,Active,False\nm,64,2,60.5,STATE_COMPLETED,False\n", nil,
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 100.5s finished\n" +
				"m b64 c2 e10 on runs from 2020-10-21T00:01:41.5 60.5s finished\n" +
				"refused: runs.csv:3: outcome (sys/state): the run ended as failed, and no epoch has a time: nothing" +
				" can be learned from it\n" +
				"refused: runs.csv:4: outcome (sys/state): the run is active: only ended runs can be imported\n",
		},
		{
			"completions of jobs",
			"job  batch  cpus  completions  duration\nr1      64     2          1/1     5m12s\n" +
				"r2      64     2          0/1       12s\n",
			func(o *importer.Options) { o.Defaults[importer.FieldModel] = "m" },
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 312s finished\n" +
				"refused: runs.csv:3: outcome (completions): the run is 0/1: only ended runs can be imported\n",
		},
		{
			"states of queues",
			"jobid name st time nodes\n1 m R 10:23 1\n2 m PD 0:10 1\n3 m JOB_STATE_FAILED 0:10 1\n", nil,
			"refused: runs.csv:2: outcome (st): the run is r: only ended runs can be imported\n" +
				"refused: runs.csv:3: outcome (st): the run is pd: only ended runs can be imported\n" +
				"refused: runs.csv:4: outcome (st): the run ended as job_state_failed, and no epoch has a time:" +
				" nothing can be learned from it\n",
		},
		{
			"hyperparameters in groups",
			"hyperparams.Args.arch,hyperparams.Args.batch_size,cpus,seconds\nm,64,2,100.5\n", nil,
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 100.5s finished\n",
		},
		{
			"datasets, and a default where there is none",
			"model,dataset,batch,cpus,time_s\nm,imagenet,64,1,72.5\nm,,64,1,65.25\n",
			func(o *importer.Options) { o.Defaults[importer.FieldDataset] = "cifar10" },
			"m@imagenet b64 c1 e10 on runs from 2020-10-21T00:00:00 72.5s finished\nm@cifar10 b64 c1 e10 on " +
				"runs from" +
				" 2020-10-21T00:01:13.5 65.25s finished\n",
		},
		{
			"times of their own",
			"model;batch;cpus;start_time;end_time;host;njobs\nm;64;1;2021-03-01 10:00:00;2021-03-01" +
				" 10:01:40;Worker.1;3\n",
			func(o *importer.Options) { o.Zone = time.UTC },
			"m b64 c1 e10 on worker-1 from 2021-03-01T10:00:00 100s finished\n",
		},
		{
			"dates of which one shows that the month comes first",
			"model,batch,cpus,start_time,end_time\nm,64,1,11/12/2021 10:00 AM,11/12/2021 1:00 PM\n" +
				"m,64,1,11/13/2021 10:00:00.5,13.11.2021 11:00\n",
			func(o *importer.Options) { o.Zone = time.UTC },
			"m b64 c1 e10 on runs from 2021-11-12T10:00:00 10800s finished\n" +
				"m b64 c1 e10 on runs from 2021-11-13T10:00:00.5 3599.5s finished\n",
		},
		{
			"a time without a zone",
			"model,batch,cpus,start_time,time_s\nm,64,1,2021-03-01 10:00:00,100\n", nil,
			"refused: runs.csv:2: started_at (start_time): \"2021-03-01 10:00:00\" has no time zone: give" +
				" --time-zone, such as --time-zone Europe/Amsterdam or --time-zone UTC\n",
		},
		{
			"the runs without timestamps would end in the future",
			"model,batch,cpus,time_s\nm,64,1,86400\nm,64,2,172799\n",
			func(o *importer.Options) { o.Since = time.Date(2025, time.December, 30, 0, 0, 0, 0, time.UTC) },
			"m b64 c1 e10 on runs from 2025-12-30T00:00:00 86400s finished\nrefused: runs.csv:3: since: the run" +
				" would end at 2026-01-02T00:00:00Z, in the future: --since 2025-12-27 would do\n",
		},
		{
			"percentages, error rates, and node types",
			"model,batch,cpus,time_s,acc,gpu_type,cpu_model\nm,64,1,10.5,93,V100,\nm,64,1,11.5,91.5%,A100,EPYC\n",
			nil,
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 10.5s finished accuracy 0.93 of V100\n" +
				"m b64 c1 e10 on runs from 2020-10-21T00:00:11.5 11.5s finished accuracy 0.915 of EPYC + A100\n",
		},
		{
			"error rates of epochs",
			"run_id,model,batch,cpus,epoch,epoch_seconds,val_error\na,m,64,1,1,5,0.25\na,m,64,1,2,5,12 %\n",
			func(o *importer.Options) { o.Defaults[importer.FieldEpochs] = "2" },
			"m b64 c1 e2 on runs from 2020-10-21T00:00:00 10s finished accuracy 0.88 1:5=0.75 2:5=0.88\n",
		},
		{
			"exports of tracking tools, and forms of times",
			"Run ID,params.model,params.batch_size,config/cpus,start_time,end_time,Duration," +
				"metrics.val_acc,tags.mlflow.user\n" +
				"a,m,64,1,2021-03-01 10:00:00+00:00,2021-03-01 11:00:00+00:00,60 min,0.5,ada\n" +
				"b,m,64,1,2021-03-01 12:00,2021-03-02_13-00-00,1 day 01:00:00,0.6,ada\n" +
				"c,m,64,1,2021/03/05 10:00:00,2021-03-05T10:01:02Z,01:02,0.7,ada\n",
			func(o *importer.Options) { o.Zone = time.UTC },
			"m b64 c1 e10 on runs from 2021-03-01T10:00:00 3600s finished accuracy 0.5\n" +
				"m b64 c1 e10 on runs from 2021-03-01T12:00:00 90000s finished accuracy 0.6\n" +
				"m b64 c1 e10 on runs from 2021-03-05T10:00:00 62s finished accuracy 0.7\n",
		},
		{
			"milliseconds since 1970, and a duration with a unit",
			"model\tbatch\tcpus\tended_at\tduration_seconds\nm\t64.0\t1\t1614592900000\t1m40s\n",
			nil,
			"m b64 c1 e10 on runs from 2021-03-01T10:00:00 100s finished\n",
		},
		{
			"the run ended before it started",
			"model,batch,cpus,start_time,end_time\nm,64,1,2021-03-01T10:00:00Z,2021-03-01T09:00:00Z\n",
			nil,
			"refused: runs.csv:2: ended_at (end_time): 2021-03-01T09:00:00Z is before the start, " +
				"2021-03-01T10:00:00Z\n",
		},
		{
			"it has not happened yet",
			"model,batch,cpus,start_time,time_s\nm,64,1,2030-01-01T00:00:00Z,100\n", nil,
			"refused: runs.csv:2: ended_at: 2030-01-01T00:01:40Z is in the future\n",
		},
		{
			"the batch size of one of two devices: that of the run is unknown",
			"model,per_device_train_batch_size,num_gpus,cpus,time_s\nm,8,2,4,100\n", nil,
			"m b0 c4 e10 on runs from 2020-10-21T00:00:00 100s finished\n",
		},
		{"no batch size", "model,batch,cpus,time_s\nm,,1,100\n", nil,
			"m b0 c1 e10 on runs from 2020-10-21T00:00:00 100s finished\n"},
		{"no batch size in one of two rows", "model,batch,cpus,time_s\nm,64,1,100\nm,,1,100\n", nil,
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 100s finished\n" +
				"refused: runs.csv:3: batch_size (batch): missing in the source: name its column with --columns" +
				" batch_size=NAME, or give --batch-size\n"},
		{
			"a field is wrong",
			"model,batch,cpus,time_s,accuracy,status\nm,64.5,1,100,0.9,ok\n" +
				"m,64,none,100,0.9,ok\nm,64,1,soon,0.9,ok\nm,64,1,100,930,ok\nm,64,1,100,0.9,odd\n",
			nil,
			"refused: runs.csv:2: batch_size (batch): \"64.5\" is not a whole number between 1 and 16777216\n" +
				"refused: runs.csv:3: cpus: missing in the source: name its column with --columns cpus=NAME, or " +
				"give" +
				" --cpus\n" +
				"refused: runs.csv:4: duration_seconds (time_s): \"soon\" is not a time in seconds, such as " +
				"493.5, or" +
				" with a unit, such as 8m13.5s\n" +
				"refused: runs.csv:5: accuracy: \"930\" is neither a number between 0 and 1 nor a percentage\n" +
				"refused: runs.csv:6: outcome (status): \"odd\" is not finished, failed or cancelled\n",
		},
		{
			"a table that a person wrote: comments, a title, decimal commas, units, German words, and a sum",
			"# sweep, 2024\nSetup;;;Result;\nModell;Batch\u00a0Size;CPUs;Dauer [min];val. acc. [%]\n" +
				"m;64;1;1.000,5;0,9\nm;128;1;900,25;71,5\n;;;;\nMean;;;950,4;36,2\n", nil,
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 60030s finished accuracy 0.009\n" +
				"m b128 c1 e10 on runs from 2020-10-21T16:40:31 54015s finished accuracy 0.715\n" +
				"refused: runs.csv:7: the row \"Mean\" sums up others: it is no run or epoch\n",
		},
		{
			"UTF-16, thousands, a duration of ISO 8601, and the size of all devices",
			utf16("model\tbatch size\teffective_batch_size\tcpus\ttime\tsamples\n" +
				"m\t\t1,024\t2\tPT1H0.5S\t60,000.0\n"), nil,
			"m b1024 c2 e10 on runs from 2020-10-21T00:00:00 3600.5s finished\n",
		},
		{
			"a ratio among percentages, and an end that may be either", "model,batch,cpus,time_s,acc,state\n" +
				"m,64,1,10.5,93,done\nm,32,1,11.5,0.91,done\nm,16,1,12.5,90,terminated\n", nil,
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 10.5s finished accuracy 0.93\n" +
				"refused: runs.csv:3: accuracy (acc): 0.91 may be a ratio or a percentage: other rows have " +
				"percentages\n" +
				"refused: runs.csv:4: outcome (state): \"terminated\" is not finished, failed or cancelled\n",
		},
		{
			"two columns of one name", "model,batch,cpus,time_s,acc,acc\nm,64,1,10.5,0.99,0.9\n", nil,
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 10.5s finished\n",
		},
		{
			"the flags of commands", "cmd id,Args,request cpus,wall time\n" +
				"1,t.py -b 64 --model m,2,10.5\n2,torchrun --nproc_per_node=2 t.py " +
				"--per_device_train_batch_size 8 --model m,2,9.5\n",
			func(o *importer.Options) { o.Columns = map[string]string{importer.FieldCommand: "Args"} },
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 10.5s finished\n" +
				"m b0 c2 e10 on runs from 2020-10-21T00:00:11.5 9.5s finished\n",
		},
		{
			"percentages, and processes of scikit-learn", "model,batch,cpu,n_jobs,network,time_s\n" +
				"m,64,95,4,12.5,100\n",
			func(o *importer.Options) { o.Defaults[importer.FieldCPUs] = "2" },
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 100s finished\n",
		},
		{
			"the time of the day is no duration", "model,batch,cpus,date,time\nm,64,1,2024-03-04,13:57:28\n", nil,
			"refused: runs.csv:2: duration_seconds: missing in the source: name its column with --columns" +
				" duration_seconds=NAME\n",
		},
		{
			"columns that are named, and rows that are left out",
			"what,bs,n,t,keep\nm,64,1,100,yes\nm,32,1,110,no\n",
			func(o *importer.Options) {
				o.Columns = map[string]string{
					importer.FieldModel:   "what",
					importer.FieldCPUs:    "n",
					importer.FieldSeconds: "t",
				}
				o.Where = map[string]string{"keep": "yes"}
			},
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 100s finished\n",
		},
		{
			"the mean time of an epoch",
			"model,batch_size,cpus,time_per_epoch,startup_seconds\nbert,16,4,50.5,10\n", nil,
			"bert b16 c4 e10 on runs from 2020-10-21T00:00:00 515s finished startup 10\n",
		},
		{
			"start-up is known",
			"model,batch,cpus,time_s,startup_s\nm,64,1,100,20\nm,64,1,100,100\n", nil,
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 100s finished startup 20\nrefused: runs.csv:3:" +
				" startup_seconds (startup_s): 100 s of start-up is not less than the duration of the run, 100 s\n",
		},
		{
			"rows of the wrong length, and quotes",
			"model,batch,cpus,time_s\nm,64,1\n\"m\",64,1,100\nm\"x,64,1,100\n", nil,
			"m b64 c1 e10 on runs from 2020-10-21T00:00:00 100s finished\nrefused: runs.csv:2: the row has 3 " +
				"fields," +
				" the header 4\nrefused: runs.csv:4: bare \" in non-quoted-field\n",
		},
	} {
		o := importer.Options{
			Since:    since,
			Now:      now,
			Defaults: map[string]string{importer.FieldEpochs: "10"},
		}
		if c.change != nil {
			c.change(&o)
		}
		if got := brief(read(t, o, "runs.csv", c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

const refusedAsUnclear = "refused: runs.csv:2: duration_seconds (time): is it the time of each epoch, or since" +
	" the start of a run, which may have been resumed? Name the column with --columns epoch_seconds=NAME if it is the" +
	" time of each\n"

func TestReader_CSVWithARowPerEpoch(t *testing.T) {
	for _, c := range []struct {
		name, text, epochs string
		want               string
	}{
		{
			"two runs, counted from 0",
			"run,model,batch,cpus,epoch,epoch_seconds,val_acc\n" +
				"a,m,64,2,0,2.5,0.8\nb,m,32,2,0,3.5,0.7\na,m,64,2,1,2,0.9\nb,m,32,2,1,3,0.8\n",
			"",
			"m b64 c2 e2 on runs from 2020-10-21T00:00:00 4.5s finished accuracy 0.9 1:2.5=0.8 2:2=0.9\nm b32 c2 e2" +
				" on runs from 2020-10-21T00:00:05.5 6.5s finished accuracy 0.8 1:3.5=0.7 2:3=0.8\n",
		},
		{"fewer than promised", "model,batch,cpus,epoch,seconds\nm,64,2,1,2.5\nm,64,2,2,2\n", "10",
			"refused: runs.csv:2: epochs: expected 10 epochs, found 2\n"},
		{
			"one is lost", "model,batch,cpus,epoch,seconds\nm,64,2,1,2.5\nm,64,2,3,2\n", "",
			"refused: runs.csv:2: epoch: epoch 3 follows epoch 1: epochs are missing, or two runs are mixed\n",
		},
		{
			"rows are steps", "iteration,time,model,batch,cpus\n99,0.35,m,64,2\n199,0.34,m,64,2\n", "5",
			"refused: runs.csv:2: epoch: the rows are steps of one run, by the column iteration: give --columns " +
				"epoch=iteration if a step is an epoch, or --columns run_id=NAME if a row is a run\n" +
				"refused: runs.csv:3: epoch: the rows are steps of one run, by the column iteration: give " +
				"--columns " +
				"epoch=iteration if a step is an epoch, or --columns run_id=NAME if a row is a run\n",
		},
		{
			"the column epochs may count", "epochs,model,batch,cpus,time\n1,m,64,2,5\n2,m,64,2,6\n", "",
			"refused: runs.csv:2: epochs: the column epochs counts the rows: give --columns epoch=epochs if a " +
				"row is an" +
				" epoch, or --columns epochs=epochs if it is a run\nrefused: runs.csv:3: epochs: the column " +
				"epochs counts the" +
				" rows: give --columns epoch=epochs if a row is an epoch, or --columns epochs=epochs if it is a " +
				"run\n",
		},
		{
			"the accuracy beside the loss of the training",
			"epoch,accuracy,loss,val_loss,model,batch,cpus,time\n1,0.9,1,1.2,m,64,2,5\n", "",
			"m b64 c2 e1 on runs from 2020-10-21T00:00:00 5s finished 1:5\n",
		},
		{
			"percentages of errors, seeds, a total, and the index of pandas",
			",seed,epoch #,time (mm:ss),test err,model,batch,cpus\n0,7,1,00:06,1.5,m,64,2\n1,7,2,00:05,0.5,m,64,2\n" +
				"2,8,1,00:07,2.5,m,64,2\n", "",
			"m b64 c2 e2 on runs from 2020-10-21T00:00:00 11s finished accuracy 0.995 1:6=0.985 2:5=0.995\n" +
				"m b64 c2 e1 on runs from 2020-10-21T00:00:12 7s finished accuracy 0.975 1:7=0.975\n",
		},
		{
			"times of the day", "epoch,time,model,batch,cpus\n1,13:57:28,m,64,2\n2,13:58:30,m,64,2\n" +
				"3,13:59:31,m,64,2\n", "",
			refusedAsUnclear,
		},
		{
			"times at parts of epochs",
			"epoch,elapsed,model,batch,cpus\n0.75,30,m,64,2\n1.5,60,m,64,2\n2.25,90,m,64,2\n3,120,m,64,2\n", "",
			"m b64 c2 e3 on runs from 2020-10-21T00:00:00 120s finished\n",
		},
		{
			"times of steps", "epoch,data_time,time,model,batch,cpus\n1,0.1,0.3,m,64,2\n2,0.1,0.3,m,64,2\n", "",
			"refused: runs.csv:2: epoch_seconds: missing in a row per epoch: name its column with --columns" +
				" epoch_seconds=NAME\n",
		},
		{
			"a row about the run before its epochs",
			"epoch,model,batch,cpus,epoch_seconds\n,m,64,2,\n1,m,64,2,2.5\n", "",
			"m b64 c2 e1 on runs from 2020-10-21T00:00:00 2.5s finished 1:2.5\n",
		},
		{
			"a run without epochs", "run,model,batch,cpus,epoch,epoch_seconds\na,m,64,2,,\nb,m,64,2,1,2.5\n", "",
			"m b64 c2 e1 on runs from 2020-10-21T00:00:00 2.5s finished 1:2.5\n" +
				"refused: runs.csv:2: epoch: no row of the run has an epoch\n",
		},
		{
			"one takes no time", "model,batch,cpus,epoch,seconds\nm,64,2,1,2.5\nm,64,2,2,0\n", "",
			"refused: runs.csv:3: duration_seconds (seconds): 0 is not above 0 seconds\n",
		},
		{
			"validation before training, counted from 0",
			"epoch,accuracy,loss,val_accuracy,val_loss,model,batch,cpus,seconds\n" +
				"0,0.5,1,0.45,1.2,m,64,2,10.5\n1,0.6,0.9,0.55,1.1,m,64,2,10.25\n",
			"",
			"m b64 c2 e2 on runs from 2020-10-21T00:00:00 20.75s finished accuracy 0.55 1:10.5=0.45 2:10.25=0.55\n",
		},
		{
			"several rows of an epoch",
			"epoch,step,train_loss,val_acc,model,batch,cpus,epoch_time\n0,4,1,,m,64,2,\n0,4,,0.5,m,64,2,9\n" +
				"1,8,0.9,,m,64,2,\n1,8,,0.6,m,64,2,8\n",
			"",
			"m b64 c2 e2 on runs from 2020-10-21T00:00:00 17s finished accuracy 0.6 1:9=0.5 2:8=0.6\n",
		},
		{
			"rows of training and validation",
			"epoch,phase,acc,time,model,batch,cpus\n1,train,0.9,50,m,64,2\n1,val,0.5,5,m,64,2\n" +
				"2,train,0.95,51,m,64,2\n2,val,0.6,5,m,64,2\n",
			"",
			"m b64 c2 e2 on runs from 2020-10-21T00:00:00 111s finished accuracy 0.6 1:55=0.5 2:56=0.6\n",
		},
		{
			"the number of the batch", "epoch,batch,loss,model,cpus,seconds\n1,1,2,m,2,5\n1,2,1,m,2,\n", "",
			"refused: runs.csv:3: batch_size (batch): the rows of one run have 1 and 2\n",
		},
		{
			"times of parts of the epochs",
			"epoch,train_time,val_time,model,batch,cpus\n1,50,5,m,64,2\n2,51,5,m,64,2\n", "",
			"refused: runs.csv:2: epoch_seconds: missing in a row per epoch: name its column with --columns" +
				" epoch_seconds=NAME\n",
		},
		{
			"rows of batches", "epoch,batch_idx,time,model,batch,cpus\n1,0,5,m,64,2\n1,1,5,m,64,2\n" +
				"2,0,5,m,64,2\n", "",
			"refused: runs.csv:2: epoch: epoch 1 has several rows with times, as of its batches: only one row of an" +
				" epoch may have a time\n",
		},
		{
			"the time since the start",
			"epoch,time,metrics/mAP50(B),best_acc,model,batch,cpus\n1,75,0.5,0.9,m,64,2\n2,135,0.6,0.9,m,64,2\n" +
				"3,196,0.7,0.9,m,64,2\n",
			"",
			"m b64 c2 e3 on runs from 2020-10-21T00:00:00 196s finished accuracy 0.7 1:75=0.5 2:60=0.6 3:61=0.7\n",
		},
		{
			"times of epochs that grow a little",
			"epoch,time,model,batch,cpus\n1,60,m,64,2\n2,61,m,64,2\n3,62.5,m,64,2\n", "",
			"m b64 c2 e3 on runs from 2020-10-21T00:00:00 183.5s finished 1:60 2:61 3:62.5\n",
		},
		{
			"two times that may be either", "epoch,time,model,batch,cpus\n1,30,m,64,2\n2,60,m,64,2\n", "",
			refusedAsUnclear,
		},
		{
			"the time since the start of a run that was resumed",
			"epoch,time,model,batch,cpus\n1,42.7,m,64,2\n2,81.5,m,64,2\n3,39.3,m,64,2\n4,78.9,m,64,2\n", "",
			refusedAsUnclear,
		},
		{
			"times of epochs that vary",
			"epoch,secs,model,batch,cpus\n1,12.5,m,64,2\n2,11.75,m,64,2\n3,12,m,64,2\n4,12.25,m,64,2\n", "",
			"m b64 c2 e4 on runs from 2020-10-21T00:00:00 48.5s finished 1:12.5 2:11.75 3:12 4:12.25\n",
		},
		{
			"exit codes and the index of pandas",
			",bs,model,n_cores,epochs,train_minutes,exit_code\n0,64,m,2,5,1.5,0\n1,32,m,2,5,2.5,1\n", "",
			"m b64 c2 e5 on runs from 2020-10-21T00:00:00 90s finished\n" +
				"refused: runs.csv:3: outcome (exit_code): the run ended as failed, and no epoch has a time: " +
				"nothing" +
				" can be learned from it\n",
		},
		{
			"numbers of rows", "id,epoch,epoch_time,val_acc,model,batch,cpus\n7,0,9,0.5,m,64,2\n" +
				"8,1,8,0.6,m,64,2\n", "",
			"m b64 c2 e2 on runs from 2020-10-21T00:00:00 17s finished accuracy 0.6 1:9=0.5 2:8=0.6\n",
		},
		{
			"the last epoch of each run, as tracking tools export it",
			"Name,batch_size,epochs,epoch,train_loss,Runtime,model,cpus\na,64,10,9,0.3,100,m,2\n" +
				"b,32,10,1,0.9,20,m,2\n",
			"",
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 100s finished\n" +
				"refused: runs.csv:3: epochs_done (epoch): the run ended after epoch 1 of 10, counted from 0 or 1:" +
				" name a column of the number of epochs that it did with --columns epochs_done=NAME\n",
		},
		{
			"runs that ended early",
			"trial_id,config/epochs,training_iteration,time_total_s,model,batch,cpus\n" +
				"a,10,10,100,m,64,2\nb,10,3,31,m,32,2\n",
			"",
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 100s finished\n" +
				"m b32 c2 e10 on runs from 2020-10-21T00:01:41 31s finished after 3\n",
		},
		{
			"the start and the end of each epoch",
			"epoch,start_time,end_time,model,batch,cpus\n1,2021-03-01T10:00:00Z,2021-03-01T10:00:55Z,m,64,2\n" +
				"2,2021-03-01T10:01:00Z,2021-03-01T10:01:55Z,m,64,2\n",
			"",
			"m b64 c2 e2 on runs from 2021-03-01T10:00:00 115s finished\n",
		},
		{
			"the epochs of a run as a progress", "epoch,train_loss,train_runtime,model,cpus\n3.0,0.5,371.5,m,2\n", "",
			"m b0 c2 e3 on runs from 2020-10-21T00:00:00 371.5s finished\n",
		},
		{
			"the last epoch of a run alone", "epoch,training_duration,model,batch,cpus\n9,0:05:00.5,m,64,2\n", "",
			"refused: runs.csv:2: epochs: the source has neither epochs nor their number: name the column with" +
				" --columns epochs=NAME, or give --epochs\n",
		},
		{
			"states of Optuna", "bs,model,cpus,epochs,time,state\n64,m,2,5,1.5,TrialState.COMPLETE\n", "",
			"m b64 c2 e5 on runs from 2020-10-21T00:00:00 1.5s finished\n",
		},
		{
			"the number of epochs of each run", "epoch,model,batch,cpus,time (min)\n10,m,64,2,1.5\n" +
				"20,m,64,2,2.5\n", "",
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 90s finished\n" +
				"m b64 c2 e20 on runs from 2020-10-21T00:01:31 150s finished\n",
		},
		{
			"a failed run has the epochs that it had",
			"model,batch,cpus,epoch,seconds,status\nm,64,2,1,2.5,failed\n", "10",
			"m b64 c2 e10 on runs from 2020-10-21T00:00:00 2.5s failed 1:2.5\n",
		},
	} {
		o := importer.Options{
			Since:    since,
			Now:      now,
			Defaults: map[string]string{importer.FieldEpochs: c.epochs},
		}
		if got := brief(read(t, o, "runs.csv", c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// With more runs, more digits are equal by chance.
func TestReader_CopiesNeedDigits(t *testing.T) {
	for _, c := range []struct {
		runs   int
		time   string
		copied int
	}{{100, "72.8899", 1}, {2000, "72.8899", 0}, {2000, "72.88991", 1}} {
		text := "run_id,model,batch,cpus,time_s\n"
		for i := range c.runs - 2 {
			text += fmt.Sprintf("r%d,m,64,1,%d.5\n", i, i+1)
		}
		text += fmt.Sprintf("a,m,64,1,%s\nb,m,128,1,%s\n", c.time, c.time)
		f := read(t, importer.Options{
			Since:    since,
			Defaults: map[string]string{importer.FieldEpochs: "10"},
		}, "runs.csv", text)
		if len(f.Refused) != c.copied || len(f.Runs) != c.runs-c.copied {
			t.Errorf("%d runs with two copies at %s: %d were rejected, want %d", c.runs, c.time, len(f.Refused),
				c.copied)
		}
	}
}

// A job ID depends on the content of the run, not on the path or the time of the import; equal runs
// get different IDs.
func TestReader_NamesAreOfTheContent(t *testing.T) {
	const text = "run_id,model,batch,cpus,time_s\nFF 1,m,64,1,72.5\n,m,64,1,80.5\n,m,64,1,80.5\n"
	o := importer.Options{Since: since, Defaults: map[string]string{importer.FieldEpochs: "10"}}
	a := read(t, o, "runs.csv", text)
	o.Since = since.Add(time.Hour)
	b := read(t, o, "elsewhere.csv", text)
	seen := map[string]bool{}
	for i := range a.Runs {
		id := a.Runs[i].JobID
		if id != b.Runs[i].JobID || seen[id] || !schemas.ValidToken(id) {
			t.Errorf("run %d has the ID %s, then %s; want the same valid and unique ID", i, id, b.Runs[i].JobID)
		}
		seen[id] = true
	}
	if !strings.HasPrefix(a.Runs[0].JobID, "past-ff-1-") {
		t.Errorf("job ID %s does not contain the ID of the run", a.Runs[0].JobID)
	}
	o.Defaults[importer.FieldDataset] = "cifar10"
	if c := read(t, o, "runs.csv", text); c.Runs[0].JobID == a.Runs[0].JobID {
		t.Error("a run on a different dataset has the same ID")
	}
	o.Defaults[importer.FieldEpochs] = "5"
	if c := read(t, o, "runs.csv", text); c.Runs[0].JobID == a.Runs[0].JobID {
		t.Error("a run with different content has the same ID")
	}
}

// A run with only a total time has no epoch events, but its end has the number of epochs; its
// neighbours have neither.
func TestRun_Events(t *testing.T) {
	o := importer.Options{
		Since:    since,
		Defaults: map[string]string{importer.FieldEpochs: "10", importer.FieldCPUs: "2"},
	}
	f := read(t, o, "runs.csv", "model,njobs,batch,time_s,accuracy\nlenet,2,64,100,0.9\n")
	if len(f.Runs) != 1 {
		t.Fatalf("runs = %s, want one", brief(f))
	}
	got := ""
	for _, e := range f.Runs[0].Events() {
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", e.ID(), err)
		}
		got += strings.ReplaceAll(e.ID(), f.Runs[0].JobID, "J") + " "
	}
	if want := "J/1/started J-beside-1/1/started J-beside-1/1/finished J/1/finished "; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	end := f.Runs[0].Events()[3].(*schemas.Ended)
	if end.EpochsDone != 10 || end.Epochs != 10 || end.DurationSeconds != 100 ||
		*end.Accuracy != 0.9 || !end.At.Equal(since.Add(100*time.Second)) {
		t.Errorf("ended = %+v, want 10 epochs in 100 s with accuracy 0.9", end)
	}
}

// A number of workers is mostly that of a data loader, so only a named column counts.
func TestRead_TakesWorkersFromANamedColumnOnly(t *testing.T) {
	const text = "run,model,batch,cpus,workers,epochs,seconds\na,m,8,2,4,3,30\nb,m,8,2,1,3,60\n"
	for _, c := range []struct {
		columns map[string]string
		want    [2]uint32
	}{{nil, [2]uint32{}}, {map[string]string{importer.FieldWorkers: "workers"}, [2]uint32{4, 0}}} {
		r := read(t, importer.Options{Columns: c.columns, Since: time.Unix(1_790_000_000, 0)}, "runs.csv", text)
		if len(r.Runs) != 2 || [2]uint32{r.Runs[0].Setting.Workers, r.Runs[1].Setting.Workers} != c.want {
			t.Errorf("columns %v: got %+v, refused %v; want the workers %v", c.columns, r.Runs, r.Refused, c.want)
		}
	}
}
