package importer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/importer"
)

// row is a row of sacct with the columns of an import.
func row(cells ...string) string { return strings.Join(cells, "|") + "\n" }

func TestReader_Slurm(t *testing.T) {
	header := row(importer.SacctFields()...)
	job := func(id, state, elapsed, limit, nodes, line string) string {
		return row(id, "night", "ada", state, "1614592800", "1614596400", elapsed, limit, "4", nodes, line)
	}
	for _, c := range []struct{ name, text, want string }{
		{
			"a finished job and its steps",
			header + job("7", "COMPLETED", "3600", "120", "gpu[01-02],login",
				"sbatch train.sh --model resnet50 --batch-size=64 --epochs 10 --dataset cifar10") +
				job("7.batch", "COMPLETED", "3600", "", "gpu01", "") + job("7.0", "COMPLETED", "3600", "", "gpu01", ""),
			"resnet50@cifar10 b64 c4 e10 on gpu01+gpu02+login from 2021-03-01T10:00:00 3600s finished limit 7200\n",
		},
		{
			"the time limit",
			header + job("8", "TIMEOUT", "3600", "60", "a", "sbatch t --batch_size 32 --epochs 9"),
			"night b32 c4 e9 on a from 2021-03-01T10:00:00 3600s failed limit 3600 because" +
				" the time limit of 1h0m0s was reached\n",
		},
		{
			"a command with the separator",
			header + job("9", "COMPLETED", "3500", "UNLIMITED", "a", "sbatch t --bs 8 --epochs 2 | tee out"),
			"night b8 c4 e2 on a from 2021-03-01T10:00:00 3500s finished\n",
		},
		{
			"jobs without a result",
			header + job("10", "RUNNING", "60", "60", "a", "sbatch t --bs 8 --epochs 2") +
				job("11", "CANCELLED by 1000", "60", "60", "a", "sbatch t --bs 8 --epochs 2") +
				job("12", "COMPLETED", "60", "60", "a", "sbatch t") + "1|2\n",
			"refused: sacct.txt:2: outcome (State): the run is running: only ended runs can be imported\n" +
				"refused: sacct.txt:3: outcome (State): the run ended as cancelled, and no epoch has a time: nothing" +
				" can be learned from it\n" +
				"refused: sacct.txt:4: epochs: the source has neither epochs nor their number: name the column with" +
				" --columns epochs=NAME, or give --epochs\n" +
				"refused: sacct.txt:5: the row has 2 fields, the header 11\n",
		},
		{
			"other columns",
			"JobID|JobName|State|Elapsed|Timelimit|NCPUS|Start|SubmitLine\n" +
				"1|a|COMPLETED|00:01:00|01:00:00|4|1614592800|sbatch -e err.log t.sh -b 64 -e 5\n" +
				"2|a|COMPLETED|1-00:00:10|UNLIMITED|4|1614592800|sbatch --wrap" +
				" 'python t.py data.batch_size=8 train.max_epochs=2'\n",
			"a b64 c4 e5 on sacct from 2021-03-01T10:00:00 60s finished limit 3600\n" +
				"a b8 c4 e2 on sacct from 2021-03-01T10:00:00 86410s finished\n",
		},
		{
			"commas, and steps of a job",
			"JobID,JobName,State,Elapsed,NCPUS,Start,SubmitLine\n" +
				"1,a,COMPLETED,00:01:00,4,1614592800,sbatch t.sh -e 5\n" +
				"1.batch,batch,COMPLETED,00:01:00,4,1614592800,\n",
			"a b0 c4 e5 on sacct from 2021-03-01T10:00:00 60s finished\n",
		},
		{
			"aligned columns",
			"JobID           JobName      State    Elapsed      NCPUS \n" +
				"------------ ---------- ---------- ---------- ---------- \n" +
				"1            resnet-la+  COMPLETED   00:01:00          4 \n",
			"refused: sacct.txt:3: model: missing in the source: name its column with --columns model=NAME, or give" +
				" --model\n",
		},
	} {
		o := importer.Options{Now: now}
		if got := brief(read(t, o, "sacct.txt", c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The document of sacct --json has the jobs of the table.
func TestReader_SlurmDocument(t *testing.T) {
	const text = `{"meta":{"Slurm":{"version":{"major":"23"}}},"errors":[],"warnings":[],"jobs":[
{"job_id":101,"name":"resnet","user":"ada","state":{"current":["COMPLETED"],"reason":"None"},"nodes":"gpu[01-02]",
 "time":{"elapsed":3600,"start":1614592800,"end":1614596400,"limit":{"set":true,"number":120}},
 "required":{"CPUs":8},
 "submit_line":"sbatch train.sh --batch-size 64 --epochs 10"},
{"job_id":102,"name":"resnet","state":{"current":"FAILED"},"nodes":"gpu01","time":{"elapsed":36,"start":1614592800},
 "required":{"CPUs":8},"submit_line":"sbatch train.sh --batch-size 512 --epochs 10"}]}`
	const want = "resnet b64 c8 e10 on gpu01+gpu02 from 2021-03-01T10:00:00 3600s finished limit 7200\n" +
		"refused: sacct.json: outcome (state.current): the run ended as failed, and no epoch has a time: nothing" +
		" can be learned from it\n"
	o := importer.Options{Now: now}
	if got := brief(read(t, o, "sacct.json", text)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Jobs without a command have their name as the model.
func TestReader_JobsWithoutCommands(t *testing.T) {
	const document = `{"jobs":[{"job_id":101,"name":"resnet","state":{"current":["COMPLETED"]},
 "nodes":"gpu01","time":{"elapsed":3600,"start":1614592800},"required":{"CPUs":8}},
 {"job_id":102,"state":{"current":["FAILED"]}}]}`
	const blocks = "==========\nhostname  gpu01\njobname   resnet\njobnumber  101\n" +
		"start_time  Mon Mar  1 10:00:00 2021\nslots  8\nexit_status  0\nru_wallclock  3600s\n" +
		"==========\njobname  x\njobnumber  102\nexit_status  1\n"
	const want = "resnet b0 c8 e10 on gpu01 from 2021-03-01T10:00:00 3600s finished\n"
	const aligned = "jobid name host  start      cpus state     runtime note\n" +
		"101   resnet gpu01 1614592800 8    COMPLETED 3600   a b\n" +
		"102   resnet gpu01 1614592800 8    FAILED    60      c\n"
	for _, text := range []string{document, blocks, aligned} {
		o := importer.Options{Now: now, Defaults: map[string]string{"epochs": "10"}, Zone: time.UTC}
		if got := brief(read(t, o, "jobs.txt", text)); !strings.HasPrefix(got, want+"refused: ") {
			t.Errorf("got %s\nwant %s and a refusal", got, want)
		}
	}
}

func TestReader_PBS(t *testing.T) {
	const text = "03/04/2024 10:00:00;Q;123.pbs;queue=gpu\n" +
		"03/04/2024 11:00:00;E;123.pbs;user=ada jobname=resnet start=1614592800 exec_host=n01/0*4+n02/0*4" +
		" Resource_List.ncpus=8 Resource_List.walltime=02:00:00 end=1614596400 Exit_status=0" +
		" resources_used.walltime=01:00:00 resources_used.ncpus=8\n" +
		"03/04/2024 12:00:00;E;124.pbs;user=ada jobname=resnet start=1614592800 exec_host=n01/0 end=1614596400" +
		" Resource_List.ncpus=1 Resource_List.walltime=01:00:00 resources_used.walltime=01:00:03 Exit_status=-11\n" +
		"03/04/2024 13:00:00;E;125.pbs;user=ada jobname=bert start=1614592800 exec_host=n01/0 end=1614596400" +
		" Resource_List.ncpus=1 Submit_arguments=\"-l select=1:ncpus=1 -- t.py -b 128 -e 10\" Exit_status=0\n" +
		"nonsense\n"
	const want = "resnet b64 c8 e5 on n01+n02 from 2021-03-01T10:00:00 3600s finished limit 7200\n" +
		"resnet b64 c1 e5 on n01 from 2021-03-01T10:00:00 3600s failed limit 3600 because the time limit of" +
		" 1h0m0s was reached\n" +
		"bert b128 c1 e10 on n01 from 2021-03-01T10:00:00 3600s finished\n" +
		"refused: pbs.txt:5: want an accounting record of PBS, such as 03/04/2024 11:00:00;E;123.server;user=ada\n"
	o := importer.Options{Now: now, Defaults: map[string]string{"batch_size": "64", "epochs": "5"}}
	if got := brief(read(t, o, "pbs.txt", text)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// testdata/sacct.txt was written by sacct of Slurm 22.05.8 with SLURM_TIME_FORMAT=%s, after trainings
// of the workload digits with time limits.
func TestReader_SlurmAccounting(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "sacct.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := importer.New(importer.Options{})
	if err := r.File("sacct.txt", file); err != nil {
		t.Fatal(err)
	}
	found := r.Finish()
	late := 0
	for _, run := range found.Runs {
		if run.Outcome == "failed" {
			late++
		}
		if run.Limit != 60 || run.Setting.BatchSize == 0 || run.Setting.CPUs != 1 || run.User != "root" {
			t.Errorf("run %s has limit %g and setting %+v, want 60 s, a batch size and 1 CPU",
				run.SourceID, run.Limit, run.Setting)
		}
	}
	// 33 jobs, of which one had the batch size "nonsense"; array jobs are jobs of their own.
	if len(found.Runs) != 32 || len(found.Refused) != 1 || late != 8 {
		t.Errorf("%d runs, %d of them at their limit, and %d refused, want 32, 8 and 1",
			len(found.Runs), late, len(found.Refused))
	}
}

// A line that does not fit into memory is an error with its place.
func TestReader_LongLine(t *testing.T) {
	r := importer.New(importer.Options{})
	err := r.File("a.jsonl", strings.NewReader("{}\n"+strings.Repeat("x", 17<<20)))
	if err == nil || err.Error() != "read a.jsonl: line 2: bufio.Scanner: token too long" {
		t.Errorf("File() = %v, want an error about line 2", err)
	}
}
