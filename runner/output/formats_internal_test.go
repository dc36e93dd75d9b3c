package output

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// read returns the epochs of a text as "number loss accuracy", with a line each second.
func read(requested int, text string, succeeded bool) []string {
	p, err := New("")
	if err != nil {
		panic(err)
	}
	p.SetEpochs(uint32(requested))
	at := noon
	var all []string
	add := func(events []EpochReport) {
		for _, e := range events {
			s := fmt.Sprint(e.Epoch)
			for _, v := range []*float64{e.Loss, e.Accuracy} {
				if v == nil {
					s += " -"
				} else {
					s += fmt.Sprintf(" %.4g", *v)
				}
			}
			all = append(all, s)
		}
	}
	for _, line := range strings.SplitAfter(text, "\n") {
		at = at.Add(time.Second)
		add(p.Write(0, []byte(line), at))
	}
	add(p.Close(at, succeeded))
	return all
}

// repeat writes a template for epochs first to last: {e} is the number, {v} and {w} fall, {a} rises, {s} are
// rising seconds.
func repeat(first, last int, template string) string {
	var b strings.Builder
	for e := first; e <= last; e++ {
		k := float64(e - first + 1)
		b.WriteString(strings.NewReplacer("{e}", fmt.Sprint(e), "{v}", fmt.Sprintf("%.4f", 1/k),
			"{w}", fmt.Sprintf("%.4f", 1.5/k), "{a}", fmt.Sprintf("%.4f", 0.5+0.1*k),
			"{s}", fmt.Sprintf("%.1f", 10*k)).Replace(template))
	}
	return b.String()
}

// testdata/outputs.txtar has outputs, and their epochs behind the name.
func TestParser_ReadsManyForms(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/outputs.txtar")
	if err != nil || len(archive.Files) == 0 {
		t.Fatal("no outputs:", err)
	}
	for _, file := range archive.Files {
		name, want, _ := strings.Cut(file.Name, ":")
		want = strings.TrimSpace(want)
		requested := 0
		if _, n, isTold := strings.Cut(name, " (of "); isTold {
			_, _ = fmt.Sscan(n, &requested)
		} else {
			_, _ = fmt.Sscan(want[strings.LastIndexByte(want, ',')+1:], &requested)
		}
		if got := strings.Join(read(requested, string(file.Data), true), ", "); got != want {
			t.Errorf("%s: got %s, want %s\n%s", name, got, want, file.Data)
		}
	}
}

// Boosting may print every tenth round, and stop early.
func TestParser_ReadsRoundsOfAnyStep(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"every tenth", repeat(0, 5,
			"{e}0:\tlearn: {v}\ttest: {w}\tbest: 0.1 (0)\ttotal: 1s\tremaining: 1s\n") + "59:\tlearn: " +
			"0.1\ttest: 0.1\tbest: 0.1 (0)\ttotal: 1s\tremaining: 0us\n", 7},
		{"from ten", repeat(1, 6, "[{e}0]\tvalid_0's auc: {a}\n"), 6},
		{"of a perceptron", repeat(1, 60, "Iteration {e}, loss = {v}\n"), 60},
		{"stopped early", repeat(1, 14, "Iteration {e}, loss = {v}\nValidation score: 0.9\n"), 14},
	} {
		if got := read(60, c.text, true); len(got) != c.want {
			t.Errorf("%s: got %q, want %d rounds", c.name, got, c.want)
		}
	}
}

// Nothing here is an epoch.
func TestParser_LeavesOtherCounters(t *testing.T) {
	for name, text := range map[string]string{
		"downloads":   repeat(1, 3, "Downloading shards:  33%|███       | {e}/3 [00:01<00:02,  1.2s/it]\r"),
		"files":       repeat(1, 3, "Fetching {e}/3 files: model-{e}.bin 100MB\n"),
		"tests":       repeat(1, 3, "tests/test_epoch.py::test_epoch[{e}] PASSED [{e}/3]\n"),
		"folds":       repeat(1, 3, "Fold {e}/3: accuracy {a} loss {v}\n"),
		"pids":        repeat(1, 3, "[2024-03-04 10:00:0{e}] [424{e}] [INFO] loss: {v}\n"),
		"checkpoints": repeat(1, 3, "Saved checkpoint {e}/3 to out/epoch={e}-step=10.ckpt\n"),
		"steps":       repeat(1, 9, "step {e}: loss {v}\n"),
		"plan":        repeat(1, 3, "Would train epoch {e}/3\n"),
		"settings":    "Num epochs: 3\nmax_epochs = 3\nepochs=3\nwarmup epochs: 1\n",
		"batches": repeat(1, 3, "[{e}/3] loss={v}\n") + repeat(1, 3,
			"[{e}/3] loss={v}\n") + repeat(1, 3, "[{e}/3] loss={v}\n"),
		"clients":     repeat(1, 3, "Client {e}/3 finished, loss={v}\n"),
		"restored":    "Restored from epoch 3\nResuming at epoch 2, loss 0.5\n",
		"many rounds": repeat(1, 99, "Iteration {e}: loss {v}\n"),
		"timed tests": repeat(1, 3, "test_epoch_{e} ... ok (0.5s)\n"),
		"saved":       repeat(1, 3, "Saved model of epoch {e} (5.2 MB) in 0.5s\n"),
		"shards": "Resolving data files: 100%|██████████| 3/3 [00:00<00:00]\n" + repeat(1, 3,
			"Loading checkpoint shards:  33%|███       | {e}/3 [00:05<00:00,  1.0s/it]\r"),
		"schedule with a total": repeat(1, 3, "Epoch {e}/3: lr={v}\n"),
		"evaluated":             repeat(1, 3, "Evaluating checkpoint of epoch {e}: accuracy {a}\n"),
		"trials":                repeat(1, 3, "[{e}/3] lr=0.1 -> val acc {a} (12.3s)\n"),
		"evaluated by name":     repeat(1, 3, "ckpt epoch={e}: val acc {a}, val loss {v}\n"),
		"byte counts":           repeat(1, 3, "Downloading train {e}/3 12.3 MB of 50.0 MB in 3.2s\n"),
		"train files":           repeat(1, 3, "train-{e}.bin: 33%|███  | {e}/3 [00:01<00:02, 12.3MB/s]\n"),
		"counts of files":       repeat(1, 3, "Processing split train: {e}/3 files, error rate {v}\n"),
		"a setting":             "epoch: 3\nLoading weights\naccuracy 0.91 on 100 images\ndone\n",
		"parts of the training": repeat(1, 5, "warmup epoch {e}/5 loss={v}\n"),
		"found checkpoints":     repeat(1, 3, "found checkpoint of epoch {e} (val acc {a})\n") + "test acc 0.8\n",
		"replicas":              repeat(1, 3, "deployment epoch-trainer: {e} of 3 updated\n"),
		"names of files":        repeat(1, 3, "  epoch={e}-val_loss={v}.ckpt   12.3 MB\n"),
		"blocks of a chain":     repeat(1, 3, "Imported new head number={e}0 epoch={e} txs=12 elapsed=12.{e}ms\n"),
		"errors of a benchmark": repeat(1, 6, "Iteration {e}/3: latency {s} ms, error {v}\n"),
		"budgets":               repeat(1, 3, "Iteration {e}: cost $0.0{e}, elapsed {s} s\n"),
		"costs":                 repeat(1, 3, "[{e}/3] optimizing the graph, pass {e}: cost 12.{e}\n"),
		"stages of sleep": repeat(0, 2, "[Epoch {e}] FW=N2 (87.3%), REF=N2 (85.1%) - MATCH\n") +
			"[Progress] Agreement: 812/1000 (81.2%)\n",
		"addresses":          repeat(1, 3, "GET /train?epoch={e}&loss={v} HTTP/1.1\n"),
		"epochs of a leader": repeat(1, 3, "leader epoch: {e}, error rate {v}, records 12{e}0\n"),
		"numbers of errors":  repeat(1, 3, "node 1 is leader, epoch {e}, applied 12{e}0, error 0\n"),
		"codes of errors":    repeat(1, 3, "part test-0: leaderEpoch={e}, errorCode=0\nnew: {epoch:{e}, offset:12}\n"),
		"clocks":             repeat(1, 3, "epoch {e}: offset 0.0{e} delay {v} error 0.{e}\n"),
		"errors of clocks":   repeat(1, 3, "epoch {e}: clock error 0.{e}\n"),
		"rounds of a clock":  repeat(1, 3, "peer 1 offset {v} error 0.{e}\nround {e}/3: accuracy {v} ms\n"),
		"solvers in a table": "Iteration  Objective  Primal Inf.  Time\n" + repeat(1, 3, "{e}  {v}  0.{e}  {e}s\n"),
		"rounds of a solver": repeat(1, 3, "cycle {e}/3: residual norm {v}, energy error {w}\n"),
		"topics":             repeat(1, 3, "pass {e}, document 10/10\n0.5*\"loss\" + 0.4*\"acc\"\n"),
		"quorums":            repeat(1, 3, "leader of epoch {e}, loss of quorum: 0.{e}\n"),
		"validators":         repeat(1, 3, "slot {e}0, epoch {e}, attestation accuracy: 9{e}.5%\n"),
		"benchmarks":         repeat(1, 3, "[{e}/3] batch accuracy: {a} throughput 1200 images/s\n"),
		"solvers":            repeat(1, 3, "Newton iteration {e}/3: residual {v}, relative error {w}\n"),
		"requests":           repeat(1, 3, "epoch {e}: 1200{e} requests, error rate 0.{e}%, latency 1.2ms\n"),
		"encoders":           repeat(1, 3, "Pass {e}/3: psnr 35.{e} ssim 0.9{e}\n"),
		"times":              "1700000001 loss 0.5\n1700000002 loss 0.4\n1700000003 loss 0.3\n",
	} {
		if got := read(3, text, true); len(got) > 0 {
			t.Errorf("%s: got %q, want none\n%s", name, got, text)
		}
	}
}
