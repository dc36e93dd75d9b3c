package output

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// read returns the epochs of a text as "number loss accuracy", with a line each second.
func read(requested int, text string, succeeded bool) []string {
	p, err := New(FormatAuto, "")
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

// repeat writes a template for epochs first to last: {e} is the number, {v} falls, {a} rises, {p} is a
// rising percentage.
func repeat(first, last int, template string) string {
	var b strings.Builder
	for e := first; e <= last; e++ {
		k := float64(e - first + 1)
		b.WriteString(strings.NewReplacer("{e}", fmt.Sprint(e), "{e+1}", fmt.Sprint(e+1), "{v}",
			fmt.Sprintf("%.4f", 1/k), "{w}", fmt.Sprintf("%.4f", 1.5/k),
			"{a}", fmt.Sprintf("%.4f", 0.5+0.1*k), "{b}", fmt.Sprintf("%.4f", 0.4+0.1*k), "{p}",
			fmt.Sprintf("%.2f", 50+10*k),
			"{n}", fmt.Sprintf("%03d", e), "{s}", fmt.Sprintf("%.1f", 10*k)).Replace(template))
	}
	return b.String()
}

func TestParser_ReadsManyForms(t *testing.T) {
	both := []string{"1 1 0.6", "2 0.5 0.7", "3 0.3333 0.8"}
	losses := []string{"1 1 -", "2 0.5 -", "3 0.3333 -"}
	numbers := []string{"1 - -", "2 - -", "3 - -"}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a line each", repeat(1, 3, "Epoch {e}/3 - loss: {v} - val_acc: {a}\n"), both},
		{"after a phase of one epoch less", repeat(1, 2, "epoch {e}/2 loss={w}\n") +
			repeat(1, 3, "epoch {e}/3 loss={v} val_acc={a}\n"), both},
		{"after settings", "epoch_num: 3\nlr_decay_epoch: 2\nsteps: 10\n" +
			repeat(1, 3, "epoch: [{e}/3] loss: {v} val_acc: {a}\n"), both},
		{"after settings, from 0", "epoch: 3\n" + repeat(0, 2, "epoch {e}: loss {v}, val_acc {a}\n"), both},
		{"before the next fold", repeat(1, 3, "Epoch {e}/3\nloss: {v} - val_acc: {a}\n") + "Fold 2\n" +
			repeat(1, 3, "Epoch {e}/3\nloss: {w} - val_acc: {b}\n"), both},
		{"before a longer training", repeat(1, 2, "-- Epoch {e}\nloss: {v}, val_acc: {a}\n") +
			repeat(1, 3, "-- Epoch {e}\nloss: {w}, val_acc: {b}\n"), both[:2]},
		{"losses of two networks", repeat(1, 3, "epoch {e}/3 G_loss: {v} D_loss: {w}\n"), numbers},
		{"losses of two networks, in words", repeat(1, 3, "epoch {e}/3 g loss {v} d loss {w}\n"), numbers},
		{"a number for each class", repeat(1, 3, "epoch {e}/3\nloss {v}\ndice [{a}, {b}]\n"), losses},
		{"an error of the training", repeat(1, 3, "epoch {e}/3 loss {v} train error: {w}\n"), losses},
		{"symbols", repeat(1, 3, "[{e}/3][9/9] Loss_D: {v} Loss_G: {w} D(x): {a}\n"), numbers},
		{"tuples", repeat(1, 3, "epoch {e}/3 loss {v}\n") +
			"losses [(1, 2.1), (2, 1.9)] accuracy (1, 0.2)\n", losses},
		{"two separators", "epoch 1/3 | loss: 1.234,5\nepoch 2/3 | loss: 934,5\n" +
			"epoch 3/3 | loss: 834,5\n", []string{"1 - -", "2 934.5 -", "3 834.5 -"}},
		{"error rates above 1", "epoch 1/3 valid WER: 1.12\nepoch 2/3 valid WER: 0.98\n" +
			"epoch 3/3 valid WER: 0.90\n", numbers},
		{"percentages above 100", "epoch 1/3 valid WER: 112\nepoch 2/3 valid WER: 2.5\n" +
			"epoch 3/3 valid WER: 0.5\n", []string{"1 - -", "2 - 0.975", "3 - 0.995"}},
		{"after a warm-up", repeat(1, 5, "warmup epoch {e}/5 loss={w}\n") +
			repeat(1, 3, "epoch {e}/3 loss={v} val_acc={a}\n"), both},
		{"decimal commas", "Epoche 1/3: Verlust 1,0, Genauigkeit 60,5 %\n" +
			"Epoche 2/3: Verlust 0,5, Genauigkeit 70,5 %\n" +
			"Epoche 3/3: Verlust 0,25, Genauigkeit 80,5 %\n", []string{"1 1 0.605", "2 0.5 0.705", "3 0.25 0.805"}},
		{"from 0", repeat(0, 2, "epoch {e}: train_loss={v} val_acc={a}\n"), both},
		{"heading", repeat(1, 3, "Epoch {e}/3\nstep 10/20 - loss: 3.0 - acc: 0.1\n"+
			"step 20/20 - loss: {v} - acc: {b} - val_loss: {w} - val_acc: {a}\n"), both},
		{"results before the number", repeat(1, 3, "train loss: {v}\nval accuracy: {a}\n"+
			"Finished epoch {e} in 12.5 s\n"), both},
		{"initial evaluation", "val accuracy: 0.1000\n" + repeat(1, 3, "Starting epoch {e}\n"+
			"train loss: {v}\nval accuracy: {a}\n"), both},
		{"fairseq", repeat(1, 3,
			"2021-03-04 10:00:00 | INFO | train | epoch "+
				"{n} | loss {v} | nll_loss 0.9 | ppl 500 | wps 1000 | lr 0.001 | train_wall 30 | wall 40\n"+
				"2021-03-04 10:00:00 | INFO | valid | epoch "+
				"{n} | valid on 'valid' subset | loss {w} | ppl 400 | num_updates 100 | best_loss 0.1\n"), losses},
		{"two columns", repeat(0, 2, "2021-03-04 10:00:00,123 - INFO - trainer - Epoch {e}/2\n"+
			"2021-03-04 10:00:00,123 - INFO - logger -                     Training |  Validation\n"+
			"2021-03-04 10:00:00,123 - INFO - logger - accuracy            |     {b}  |     {a}\n"+
			"2021-03-04 10:00:00,123 - INFO - logger - loss                |     {v}  |     {w}\n"), both},
		{"mmdet", repeat(1, 3,
			"2021-03-04 10:00:00,123 - mmdet - INFO - Epoch [{e}][50/300]\tlr: 1e-3, "+
				"eta: 1:00:00, time: 0.3, "+
				"data_time: 0.01, memory: 3000, loss_cls: 0.5, loss_bbox: 0.3, loss: {w}\n"+
				"2021-03-04 10:00:00,123 - mmdet - INFO - Epoch [{e}][300/300]\tlr: 1e-3, "+
				"eta: 1:00:00, time: 0.3, "+
				"data_time: 0.01, memory: 3000, loss_cls: 0.5, loss_bbox: 0.3, loss: {v}\n"+
				"2021-03-04 10:00:00,123 "+
				"- mmdet - INFO - Epoch(val) [{e}][50]\tbbox_mAP: {a}, bbox_mAP_50: 0.95\n"), both},
		{"speechbrain", repeat(1, 3,
			"epoch: {e}, lr: 1.00e+00 "+
				"- train loss: {v} - valid loss: {w}, valid ACC: {a}, valid WER: 30.0\n"), both},
		{"gensim", repeat(1, 3,
			"2021-03-04 10:00:00,123 : INFO : EPOCH - {e} "+
				": training on 1000 raw words (900 effective words) took 0.1s, 10000 effective words/s\n"),
			[]string{"1 - -", "2 - -", "3 - -"}},
		{"sentiment tutorial", repeat(1, 3, "Epoch: 0{e} | Epoch Time: 0m 20s\n"+
			"\tTrain Loss: {v} | Train Acc: 51.00%\n\t Val. Loss: {w} |  Val. Acc: {p}%\n"), both},
		{"graph tutorial", repeat(1, 3, "Epoch: {n}, Loss: {v}, Train: 0.9, Val: {a}, Test: 0.7\n"), losses},
		{"metric before its data", repeat(1, 3,
			"Epoch {e}: Loss: train {v}, val {w}; Accuracy: train {b}, val {a}\n"), both},
		{"bar of epochs",
			"Epochs:   0%|          | 0/3 [00:00<?, ?it/s]\r" + "Epochs:  33%|███▎      | 1/3 " +
				"[00:05<00:10,  5.0s/it, loss=1.0, val_acc=0.6]\rEpochs:  67%|██████▋   | 2/3 " +
				"[00:10<00:05,  5.0s/it, loss=0.5, val_acc=0.7]\rEpochs: " +
				"100%|██████████| 3/3 [00:15<00:00,  5.0s/it, loss=0.3333, val_acc=0.8]\n", both},
		{"tutorial of CIFAR", repeat(1, 3, "[{e},  2000] loss: {w}\n[{e},  4000] loss: {w}\n"+
			"Accuracy of the network on the 10000 test images: {p} %\n"), []string{"1 1.5 0.6",
			"2 0.75 0.7", "3 0.5 0.8"}},
		{"JSON", repeat(1, 3, "{\"epoch\": {e}, \"train_loss\": {v}, \"lr\": 0.1, \"val_acc\": {a}}\n"), both},
		{"JSON of Courier", repeat(1, 3, "{\"epoch\": {e}, \"loss\": {v}, \"accuracy\": {a}}\n"), both},
		{"a level as the name of a model",
			"epoch,main/loss,validation/main/loss,validation/main/accuracy\n" + repeat(1, 3,
				"{e},{v},{w},{a}\n"), both},
		{"two losses of parts", repeat(1, 3, "[Epoch {e}/3] [D loss: {v}] [G loss: {w}]\n"),
			[]string{"1 - -", "2 - -", "3 - -"}},
		{"steps with an evaluation", repeat(1, 3, "Iter(train) [{e}00/300] loss: {v}\n"+
			"Iter(val) [5/5] acc: {a}\n"), both},
		{"steps with two evaluations", repeat(1, 6, "Iter(train) [{e}00/600] loss: {v}\n"+
			"Iter(val) [5/5] acc: {a}\n"), nil},
		{"steps with an evaluation in between", "step 50/300 loss: 1\n" + repeat(1, 3, "val acc: 0.1\n"+
			"step {e}00/300 loss: {v}\nval acc: {a}\n"), nil},
		{"headings alone", repeat(1, 3, "Epoch {e}/3\n"), []string{"1 - -", "2 - -", "3 - -"}},
		{"no word", repeat(1, 3, "[{e}/3] loss={v} acc={a}\n"), both},
		{"Chinese", repeat(1, 3, "第 {e} 轮: 训练损失: {v}, 验证准确率: {a}\n"), both},
		{"ranks", repeat(1, 3, "[rank1] Epoch {e}: loss {w} acc 0.1\n"+
			"[rank0] Epoch {e}: loss {v} acc {a}\n"), []string{"1 1.5 0.1", "2 0.75 0.1", "3 0.5 0.1"}},
		{"JSON", repeat(1, 3,
			`{"epoch": {e}, "train": {"loss": {v}, "accuracy": 0.1}, "val": {"loss": {w}, "accuracy": {a}}, "seconds": 2.0}`+"\n"),
			both},
		{"JSON of several lines", repeat(0, 2, "{\n  \"best_epoch\": 0,\n  \"epoch\": {e},\n"+
			"  \"training_loss\": {v},\n  \"validation_accuracy\": {a}\n}\n"), both},
		{"CSV", "epoch,time,train_loss,val_loss,val_acc\n" + repeat(1, 3, "{e},{s},{v},{w},{a}\n"), both},
		{"bracketed name", repeat(1, 3, "[Epoch {e}] [Train] loss: {v}, acc: {b}\n"+
			"[Epoch {e}] [Valid] loss: {w}, acc: {a}\n"), both},
		{"every second epoch", repeat(1, 3, "Epoch [{e}0/30], Loss: {v}, Acc: {a}\n"),
			[]string{"10 1 0.6", "20 0.5 0.7", "30 0.3333 0.8"}},
		{"of", repeat(1, 3, "Epoch {e} of 3 took 12.1s\n  training loss:\t\t{v}\n"+
			"  validation loss:\t\t{w}\n  validation accuracy:\t\t{p} %\n"), both},
		{"timm", repeat(0, 2,
			"Train: {e} [   0/156 (  0%)]  Loss: 6.9 (6.9) "+
				" Time: 0.512s,  256.1/s  (0.512s,  250.0/s)  LR: 1.000e-05  Data: 0.1 (0.1)\n"+
				"Train: {e} [ 155/156 (100%)]  Loss: 6.9 ({v}) "+
				" Time: 0.512s,  256.1/s  (0.512s,  250.0/s)  LR: 1.000e-05  Data: 0.1 (0.1)\n"+
				"Test: [   0/40]  Time: 0.5 (0.5)  Loss: 6.9 (6.9)  Acc@1: 1.0 ( 1.0)  Acc@5: 2.0 ( 2.0)\n"+
				"Test: [  40/40]  Time: 0.5 (0.5)  Loss: 6.9 (6.9)  Acc@1: 1.0 ({p})  Acc@5: 2.0 (99.0)\n"+
				"Current checkpoints:\n ('./output/checkpoint-{e}.pth.tar', {p})\n"), both},
		{"spaCy", "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE \n" +
			"---  ------  ------------  --------  ------  ------  ------  ------\n" + repeat(0, 2,
			"  {e}       0          0.00     {v}    10.00   10.00   10.00    0.10\n"+
				"  {e}     200          9.00     {v}    {p}   80.00   80.00    0.80\n"), []string{"1 - -",
			"2 - -", "3 - -"}},
		{"nnU-Net", repeat(0, 2, "2024-03-04 10:00:00.123456: \n2024-03-04 10:00:00.123456: Epoch {e}\n"+
			"2024-03-04 10:00:00.123456: Current learning rate: 0.01\n"+
			"2024-03-04 10:00:00.123456: train_loss {v}\n2024-03-04 10:00:00.123456: val_loss {w}\n"+
			"2024-03-04 10:00:00.123456: Pseudo dice [{a}, 0.9]\n"+
			"2024-03-04 10:00:00.123456: Epoch time: 12.34 s\n"), losses},
		{"old Keras", repeat(1, 3, "Epoch {e}/3\n"+
			"  1/113 [..............................] - ETA: 1:05 - loss: 2.3\b\b\b\b113/113 "+
			"[==============================] "+
			"- 11s 93ms/step - loss: {v} - accuracy: {b} - val_loss: {w} - val_accuracy: {a}\n"), both},
		{"Lightning", repeat(0, 2,
			"\rEpoch {e}:   0%|          | 0/14 [00:00<?, ?it/s]\rEpoch {e}: 100%|██████████| "+
				"14/14 [00:01<00:00, 56it/s, v_num=1, train_loss={v}, val_loss={w}, val_acc={a}]"), both},
		{"epoch 0 before the training", "Epoch 0: val acc 0.1\n" + repeat(1, 3,
			"Epoch {e}: train loss {v} val acc {a}\n"), both},
		{"final evaluation", repeat(1, 3, "Epoch {e}/3\ntrain loss: {v}\n"+
			"val acc: {a}\n") + "Loading the best model\nval acc: 0.99\nTest acc: 0.98\n", both},
		{"evaluation at the end", repeat(1, 3, "Epoch {e}/3: loss {v}\n") + "Test acc: 0.98\n", losses},
		{"bar, then the mean", repeat(1, 3,
			"Epoch {e}:  50%|█████     | 5/10 [00:01<00:01, "+
				"5.0it/s, loss=9.0]\rEpoch {e}: 100%|██████████| 10/10 [00:02<00:00, 5.0it/s, loss=8.0]\n"+
				"epoch {e} train_loss={v} val_acc={a}\n"), both},
		{"several metrics in a table",
			"epoch     train_loss  valid_loss  error_rate  accuracy  time    \n" + repeat(0, 2,
				"Epoch {e+1}/3 : |████----| "+
					"4.76% [1/21 00:00<00:00 2.31]\r{e}         {v}    {w}    0.30      {a}  00:01     \n"), both},
		{"report of classes", repeat(1, 3, "Epoch {e}/3\nloss {v} on train\n"+
			"              precision    recall  f1-score   support\n\n"+
			"           0       0.10      0.20      0.30        50\n\n"+
			"    accuracy                           {a}       100\n"+
			"   macro avg       0.11      0.21      0.31       100\n"), both},
		{"evaluation of epoch 0", "***** Evaluating perplexity, Epoch 0/3 *****\n" +
			"ppl: 9.0, loss: 7.0\n" + repeat(1, 3, "Beginning of Epoch {e}/3, Total Micro Batches 10\n"+
			"***** Evaluating perplexity, Epoch {e}/3 *****\nppl: 9.0, loss: {v}\n"), losses},
		{"ranks in a column", repeat(1, 3,
			"2022-05-01 10:00:00,123 INFO [train.py:800] (0/4) Epoch {e}, batch 0, loss[loss=9.0, "+
				"simple_loss=8.0, over 2400.00 frames.], tot_loss[loss={v}, "+
				"simple_loss=0.4, over 1000.00 frames.], batch size: 30, lr: 1e-3\n"+
				"2022-05-01 10:00:00,123 INFO [train.py:800] (1/4) Epoch {e}, batch 0, loss[loss=9.0, "+
				"simple_loss=8.0, over 2400.00 frames.], tot_loss[loss=7.0, "+
				"simple_loss=0.4, over 1000.00 frames.], batch size: 30, lr: 1e-3\n"), losses},
		{"grid", repeat(1, 3, "Epoch {e}\n╒═══════╤════════╤═══════════╕\n│ label │   loss │  accuracy │\n"+
			"│ train │ {v} │ {b} │\n│ vali  │ {w} │ {a} │\n"), both},
		{"word error", repeat(1, 3, "Epoch {e} | train loss {v} | dev WER 40.0%\n"), []string{"1 1 0.6",
			"2 0.5 0.6", "3 0.3333 0.6"}},
		{"checkpoint lines", repeat(1, 3, "Epoch {e}/3 - loss: {v} - val_acc: {a}\n"+
			"Epoch {e}: val_acc improved from 0.1 to 0.9, saving model to best-{e}.ckpt\n"), both},
	} {
		requested := 3
		if strings.HasPrefix(c.name, "every") {
			requested = 30
		}
		got := read(requested, c.text, true)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %q, want %q\n%s", c.name, got, c.want, c.text)
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
		"iterations":  repeat(1, 9, "Iteration {e}: loss {v}\n"),
		"plan":        repeat(1, 3, "Would train epoch {e}/3\n"),
		"settings":    "Num epochs: 3\nmax_epochs = 3\nepochs=3\nwarmup epochs: 1\n",
		"batches": repeat(1, 3, "[{e}/3] loss={v}\n") + repeat(1, 3,
			"[{e}/3] loss={v}\n") + repeat(1, 3, "[{e}/3] loss={v}\n"),
		"clients":        repeat(1, 3, "Client {e}/3 finished, loss={v}\n"),
		"restored":       "Restored from epoch 3\nResuming at epoch 2, loss 0.5\n",
		"many rounds":    repeat(1, 99, "Iteration {e}: loss {v}\n"),
		"parts of files": repeat(1, 3, "({e}/3) part.bin: 10/100\n({e}/3) part.bin: 100/100\n"),
		"timed tests":    repeat(1, 3, "test_epoch_{e} ... ok (0.5s)\n"),
		"saved":          repeat(1, 3, "Saved model of epoch {e} (5.2 MB) in 0.5s\n"),
		"shards": "Resolving data files: 100%|██████████| 3/3 [00:00<00:00]\n" + repeat(1, 3,
			"Loading checkpoint shards:  33%|███       | {e}/3 [00:05<00:00,  1.0s/it]\r"),
		"schedule with a total": repeat(1, 3, "Epoch {e}/3: lr={v}\n"),
		"schedule":              repeat(1, 3, "Epoch {e}: lr={v}\n"),
		"evaluated":             repeat(1, 3, "Evaluating checkpoint of epoch {e}: accuracy {a}\n"),
		"byte counts":           repeat(1, 3, "Downloading train {e}/3 12.3 MB of 50.0 MB in 3.2s\n"),
		"train files":           repeat(1, 3, "train-{e}.bin: 33%|███  | {e}/3 [00:01<00:02, 12.3MB/s]\n"),
		"counts of files":       repeat(1, 3, "Processing split train: {e}/3 files, error rate {v}\n"),
		"a setting":             "epoch: 3\nLoading weights\naccuracy 0.91 on 100 images\ndone\n",
		"parts of the training": repeat(1, 5, "warmup epoch {e}/5 loss={v}\n"),
		"times":                 "1700000001 loss 0.5\n1700000002 loss 0.4\n1700000003 loss 0.3\n",
	} {
		if got := read(3, text, true); len(got) > 0 {
			t.Errorf("%s: got %q, want none\n%s", name, got, text)
		}
	}
}
