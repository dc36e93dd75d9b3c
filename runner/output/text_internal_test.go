package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParser_ReadsCapturedOutput reads what training frameworks really printed.
func TestParser_ReadsCapturedOutput(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/framework-output/*.txt")
	if err != nil || len(files) == 0 {
		t.Skip("there is no ../shared/data/framework-output")
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, strings.TrimSuffix(filepath.Base(file), ".txt"))
		whole := parseLines(t, 0, string(text), true)
		for _, line := range whole {
			fmt.Fprintln(&all, "\t"+line)
		}
		if diff := cmp.Diff(parse(t, FormatAuto, "", string(text)), parseBytes(t, string(text))); diff != "" {
			t.Errorf("%s: the reports depend on the pieces that arrive (-whole +bytes):\n%s", file, diff)
		}
	}
	const golden = "testdata/captured.golden"
	if os.Getenv("COURIER_UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("reports of captured output, COURIER_UPDATE=1 writes them (-want +got):\n%s", diff)
	}
}

// Where lines have a number that counts, the pattern that is suggested reads every epoch.
func TestParser_SuggestsPatternsForCapturedOutput(t *testing.T) {
	for file, epochs := range map[string]int{
		"jax-flax-loop":         4,
		"pytorch-one-line":      4,
		"sklearn-mlpclassifier": 6,
		"sklearn-partial-fit":   4,
	} {
		text, err := os.ReadFile("../../../shared/data/framework-output/" + file + ".txt")
		if err != nil {
			t.Skip("there is no ../shared/data/framework-output")
		}
		p := newParser(func() []lineFormat { return nil })
		p.recogniser = newRecogniser(0)
		p.Write(0, text, noon)
		line, pattern := p.Suggest()
		if got := parse(t, FormatPattern, pattern, string(text)); len(got) != epochs {
			t.Errorf("%s: %q of %q finds %d epochs, want %d", file, pattern, line, len(got), epochs)
		}
	}
}

// parseBytes parses an output that arrives byte by byte.
func parseBytes(t *testing.T, text string) []string {
	t.Helper()
	p, err := New(FormatAuto, "")
	if err != nil {
		t.Fatal(err)
	}
	var reports []EpochReport
	for i := range len(text) {
		reports = append(reports, p.Write(0, []byte{text[i]}, noon)...)
	}
	return format(append(reports, p.Close(noon, true)...))
}

// A report has the metric behind its accuracy as it was printed.
func TestParser_ReportsThePrintedMetric(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		name, line string
		accuracy   float64
		want       Metric
	}{
		{"a ratio", "Epoch 1/2 loss=0.5 val_acc=0.91", 0.91, Metric{"val acc", 0.91}},
		{"a percentage", "Epoch 1/2 loss=0.5 val_acc=91.5", 0.915, Metric{"val acc", 91.5}},
		{"a percent sign", "Epoch 1/2, test accuracy: 91 %", 0.91, Metric{"test accuracy", 91}},
		{"an error rate", "Epoch 1/2 loss=0.5 val_error=0.08", 0.92, Metric{"val error", 0.08}},
		{"a word error rate", "epoch 1 | loss 0.5 | dev WER 0.25", 0.75, Metric{"dev wer", 0.25}},
		{"a distance", "Epoch 1/2 loss=0.5 val_rmse=3.2", none, Metric{"val rmse", 3.2}},
		{"validation wins", "Epoch 1/2 acc=0.99 val_acc=0.9", 0.9, Metric{"val acc", 0.9}},
		{"accuracy wins over a loss", "Epoch 1/2 val_acc=0.9 val_loss=0.4", 0.9, Metric{"val acc", 0.9}},
		{"only a loss of the training", "Epoch 1/2 loss=0.5", none, Metric{}},
		{"JSON", `{"epoch":1,"dev_wer":0.25}`, 0.75, Metric{"dev wer", 0.25}},
		{"JSON with a percentage", `{"epoch":1,"val_acc":91.5}`, 0.915, Metric{"val acc", 91.5}},
		{"Hugging Face", `{'eval_loss': 0.5, 'eval_wer': 0.25, 'eval_runtime': 1, 'epoch': 1.0}`, 0.75,
			Metric{"eval wer", 0.25}},
	} {
		p, err := New(FormatAuto, "")
		if err != nil {
			t.Fatal(err)
		}
		reports := append(p.Write(0, []byte(c.line+"\nEpoch 2/2\n"), noon), p.Close(noon, true)...)
		if len(reports) == 0 {
			t.Errorf("%s: no report", c.name)
			continue
		}
		accuracy := float64(none)
		if a := reports[0].Accuracy; a != nil {
			accuracy = *a
		}
		if accuracy != c.accuracy || reports[0].Metric != c.want {
			t.Errorf("%s: accuracy %g of %+v, want %g of %+v",
				c.name, accuracy, reports[0].Metric, c.accuracy, c.want)
		}
	}
}

func TestParser_ReadsTextOfTrainingPrograms(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"PyTorch's MNIST example", `
Train Epoch: 1 [0/60000 (0%)]	Loss: 2.305400
Train Epoch: 1 [640/60000 (1%)]	Loss: 1.359781

Test set: Average loss: 0.0459, Accuracy: 9844/10000 (98%)

Train Epoch: 2 [0/60000 (0%)]	Loss: 0.110000
Train Epoch: 2 [640/60000 (1%)]	Loss: 0.090000

Test set: Average loss: 0.0345, Accuracy: 9886/10000 (99%)
`, []string{"1 0 0.0459 0.98", "2 0 0.0345 0.99"}},
		{"PyTorch's ImageNet example", `
Epoch: [0][   1/5005]	Time  6.200 ( 6.200)	Data  1.000 ( 1.000)	Loss 7.0000e+00 (7.0000e+00)	Acc@1   0.00 (  0.00)	Acc@5   0.39 (  0.39)
Epoch: [0][5000/5005]	Time  0.200 ( 0.210)	Data  0.001 ( 0.002)	Loss 4.5000e+00 (4.8000e+00)	Acc@1  12.50 ( 11.00)	Acc@5  30.00 ( 29.00)
Test: [  0/196]	Time  2.1 ( 2.1)	Loss 3.2 (3.2)	Acc@1  28.1 (28.1)	Acc@5 56.0 (56.0)
 *   Acc@1 23.500 Acc@5 47.100
Epoch: [1][   1/5005]	Time  6.200 ( 6.200)	Data  1.000 ( 1.000)	Loss 4.0000e+00 (4.0000e+00)	Acc@1  15.00 ( 15.00)	Acc@5  40.00 ( 40.00)
Test: [  0/196]	Time  2.1 ( 2.1)	Loss 3.0 (3.0)	Acc@1  30.1 (30.1)	Acc@5 60.0 (60.0)
 *   Acc@1 31.250 Acc@5 55.100
`, []string{"0 0 4.8 0.235", "1 0 4 0.3125"}},
		{"PyTorch's CIFAR tutorial", `
[1,  2000] loss: 2.187
[1,  4000] loss: 1.850
[2,  2000] loss: 1.393
[2,  4000] loss: 1.374
Finished Training
Accuracy of the network on the 10000 test images: 54 %
`, []string{"1 0 1.85 -", "2 0 1.374 -"}},
		{"train and validation on lines of their own", `
Epoch 1/2
Train Loss: 0.9 Acc: 0.60
Val Loss: 0.7 Acc: 0.71
Epoch 2/2
Train Loss: 0.5 Acc: 0.80
Val Loss: 0.6 Acc: 0.75
Training complete in 0m 12s
`, []string{"1 0 0.9 0.71", "2 0 0.5 0.75"}},
		{"tabs between losses", "Epoch: 1 \tTraining Loss: 0.8292 \tValidation Loss: 0.3710\n" +
			"Epoch: 2 \tTraining Loss: 0.3400 \tValidation Loss: 0.2910\n",
			[]string{"1 0 0.8292 -", "2 0 0.34 -"}},
		{"a logger before", `
2026-11-22 09:07:21,123 - INFO - Epoch 1/2 - loss: 0.9021 - val_accuracy: 0.81
2026-11-22 09:07:25,123 - INFO - Epoch 2/2 - loss: 0.7021 - val_accuracy: 0.86
`, []string{"1 0 0.9021 0.81", "2 0 0.7021 0.86"}},
		{"Keras of TensorFlow 1", `
Train on 60000 samples, validate on 10000 samples
Epoch 1/2
60000/60000 [==============================] - 15s 250us/sample - loss: 0.2 - acc: 0.93 - val_loss: 0.1 - val_acc: 0.96
Epoch 2/2
60000/60000 [==============================] - 14s 240us/sample - loss: 0.1 - acc: 0.97 - val_loss: 0.09 - val_acc: 0.97
`, []string{"1 15 0.2 0.96", "2 14 0.1 0.97"}},
		{"Keras's callbacks between", `
Epoch 1/3
10/10 - 1s - 100ms/step - accuracy: 0.50 - loss: 1.0 - val_accuracy: 0.55 - val_loss: 0.9
Epoch 1: val_loss improved from inf to 0.90000, saving model to best.keras
Epoch 2/3
10/10 - 1s - 100ms/step - accuracy: 0.60 - loss: 0.8 - val_accuracy: 0.65 - val_loss: 0.7
Epoch 2: val_loss improved from 0.90000 to 0.70000, saving model to best.keras
Epoch 2: early stopping
Restoring model weights from the end of the best epoch: 2.
`, []string{"1 1 1 0.55", "2 1 0.8 0.65"}},
		{"Keras without validation", `
Epoch 1/2
10/10 - 12s - 1s/step - loss: 1.0
Epoch 2/2
10/10 - 11s - 1s/step - loss: 0.8
`, []string{"1 12 1 -", "2 11 0.8 -"}},
		{"MXNet", `
INFO:root:Epoch[0] Batch [0-100]	Speed: 1000.00 samples/sec	accuracy=0.80
INFO:root:Epoch[0] Train-accuracy=0.904
INFO:root:Epoch[0] Time cost=2.300
INFO:root:Epoch[0] Validation-accuracy=0.955
INFO:root:Epoch[1] Batch [0-100]	Speed: 1000.00 samples/sec	accuracy=0.95
INFO:root:Epoch[1] Train-accuracy=0.961
INFO:root:Epoch[1] Time cost=2.100
INFO:root:Epoch[1] Validation-accuracy=0.965
`, []string{"0 2.3 - 0.955", "1 2.1 - 0.965"}},
		{"JAX's MNIST example", `
Epoch 0 in 3.21 sec
Training set accuracy 0.8700000047683716
Test set accuracy 0.8799999952316284
Epoch 1 in 2.10 sec
Training set accuracy 0.9000000047683716
Test set accuracy 0.9100000262260437
`, []string{"0 3.21 - 0.8799999952316284", "1 2.1 - 0.9100000262260437"}},
		{"HistGradientBoosting of scikit-learn", `
Binning 0.010 GB of training data: 0.123 s
Fitting gradient boosted rounds:
[1/3] 1 tree, 31 leaves, max depth = 9, train loss: 0.65000, in 0.310s
[2/3] 1 tree, 31 leaves, max depth = 8, train loss: 0.61000, in 0.280s
[3/3] 1 tree, 31 leaves, max depth = 9, train loss: 0.58000, in 0.290s
Fit 3 trees in 1.0 s, (93 total leaves)
`, []string{"1 0.31 0.65 -", "2 0.28 0.61 -", "3 0.29 0.58 -"}},
		{"GradientBoosting of scikit-learn", `
      Iter       Train Loss   Remaining Time
         1           1.2613            0.05s
         2           1.1715            0.04s
`, []string{"1 0 1.2613 -", "2 0 1.1715 -"}},
		{"SGDClassifier of scikit-learn", `
-- Epoch 1
Norm: 12.34, NNZs: 4, Bias: -0.100000, T: 100, Avg. loss: 0.500000
Total training time: 0.00 seconds.
-- Epoch 2
Norm: 11.34, NNZs: 4, Bias: -0.110000, T: 200, Avg. loss: 0.400000
Total training time: 0.01 seconds.
Convergence after 2 epochs took 0.01 seconds
`, []string{"1 0 0.5 -", "2 0 0.4 -"}},
		{"a CSV file", "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.6,1.2,0.65,1.1\n1,0.7,1.0,0.72,0.9\n",
			[]string{"0 0 1.2 0.65", "1 0 1 0.72"}},
		{"a table with bars", `
| epoch | train_loss | valid_acc | time |
|-------|------------|-----------|------|
| 1     | 0.9        | 71.5%     | 3.2s |
| 2     | 0.7        | 75.5%     | 3.1s |
`, []string{"1 3.2 0.9 0.715", "2 3.1 0.7 0.755"}},
		{"accuracies of percent without a sign", "epoch: 1 val acc: 52.5\nepoch: 2 val acc: 0.9\n",
			[]string{"1 0 - 0.525", "2 0 - 0.009"}},
		{"JSON behind a prefix", `
INFO:root:{"epoch": 1, "accuracy": 91.0}
0: {"epoch": 2, "accuracy": 92.0}
`,
			[]string{"1 0 - 0.91", "2 0 - 0.92"}},
		{"JSON of docker compose", "trainer-1  | {\"epoch\": 1, \"seconds\": 2, \"val_acc\": 0.91}\n",
			[]string{"1 2 - 0.91"}},
		{"a dictionary of Python", `
{'epoch': 1, 'loss': 0.5, 'val_acc': 0.8}
{'epoch': 2, 'loss': nan, 'val_acc': 0.9}
`,
			[]string{"1 0 0.5 0.8", "2 0 - 0.9"}},
		{"Hugging Face with losses only", `
{'loss': 0.9, 'grad_norm': 1.2, 'learning_rate': 4e-05, 'epoch': 0.53}
{'loss': 0.7, 'grad_norm': 1.1, 'learning_rate': 3e-05, 'epoch': 1.06}
{'loss': 0.6, 'grad_norm': 1.1, 'learning_rate': 2e-05, 'epoch': 1.6}
{'train_runtime': 12.3, 'train_samples_per_second': 100.0, 'train_loss': 0.7, 'epoch': 2.0}
`, []string{"1 0 0.9 -", "2 0 0.6 -"}},
		{"Hugging Face with a loss each epoch", `
{'loss': 0.9, 'grad_norm': 1.2, 'learning_rate': 4e-05, 'epoch': 1.0}
{'eval_loss': 0.8, 'eval_accuracy': 0.7, 'eval_runtime': 0.2, 'epoch': 1.0}
{'loss': 0.7, 'grad_norm': 1.2, 'learning_rate': 4e-05, 'epoch': 2.0}
{'eval_loss': 0.6, 'eval_accuracy': 0.8, 'eval_runtime': 0.2, 'epoch': 2.0}
{'train_runtime': 12.3, 'train_loss': 0.8, 'epoch': 2.0}
`, []string{"1 0 0.9 0.7", "2 0 0.7 0.8"}},
		{"headings only", "Epoch 1\nEpoch 2\nEpoch 3\n", nil},
		{"pytorch-tabnet", "" +
			"epoch 0  | loss: 0.65 | val_0_auc: 0.7 |  0:00:02s\n" +
			"epoch 1  | loss: 0.55 | val_0_auc: 0.75 |  0:00:04s\n" +
			"epoch 2  | loss: 0.45 | val_0_auc: 0.78 |  0:00:06s\n",
			[]string{"0 0 0.65 0.7", "1 0 0.55 0.75", "2 0 0.45 0.78"}},
		{"torchvision's references", "" +
			"Epoch: [0]  [ 0/10]  eta: 0:00:10  lr: 0.1  img/s: 30.1  loss: 6.9 (6.9)  acc1: 0.0 (0.0)  " +
			"acc5: 0.0 (0.0)  time: 1.0  data: 0.5  max mem: 100\n" +
			"Epoch: [0]  [ 9/10]  eta: 0:00:01  lr: 0.1  img/s: 30.1  loss: 5.9 (6.4)  acc1: 10.0 (5.0) " +
			" acc5: 20.0 (10.0)  time: 1.0  data: 0.5  max mem: 100\n" +
			"Epoch: [0] Total time: 0:00:12\n" +
			"Test:   [0/5]  eta: 0:00:05  loss: 5.0 (5.0)  acc1: 10.0 (10.0)  acc5: 20.0 (20.0)  time: " +
			"1.0  data: 0.5  max mem: 100\n" +
			"Test:  Total time: 0:00:05\n" +
			"Test:  Acc@1 12.500 Acc@5 30.000\n" +
			"Epoch: [1]  [ 0/10]  eta: 0:00:10  lr: 0.1  img/s: 30.1  loss: 4.9 (4.9)  acc1: 0.0 (0.0)  " +
			"acc5: 0.0 (0.0)  time: 1.0  data: 0.5  max mem: 100\n" +
			"Epoch: [1] Total time: 0:00:11\n" +
			"Test:  Acc@1 22.500 Acc@5 40.000\n" +
			"Training time 0:00:40\n",
			[]string{"0 0 6.4 0.125", "1 0 4.9 0.225"}},
		{"DGL", "" +
			"Epoch 00000 | Time(s) nan | Loss 1.94 | Accuracy 0.31 | ETputs(KTEPS) nan\n" +
			"Epoch 00001 | Time(s) nan | Loss 1.92 | Accuracy 0.42 | ETputs(KTEPS) nan\n" +
			"Epoch 00002 | Time(s) nan | Loss 1.90 | Accuracy 0.52 | ETputs(KTEPS) nan\n" +
			"Test accuracy 58.1%\n",
			[]string{"0 0 1.94 0.31", "1 0 1.92 0.42", "2 0 1.9 0.52"}},
		{"Flair", "" +
			"2026-01-01 10:00:00,123 ----------\n" +
			"2026-01-01 10:00:00,123 epoch 1 - iter 10/100 - loss 1.5 - time (sec): 1.00 - samples/sec: " +
			"300.0 - lr: 0.1\n" +
			"2026-01-01 10:00:05,123 EPOCH 1 done: loss 1.2 - lr: 0.100000\n" +
			"2026-01-01 10:00:06,123 DEV : loss 0.5 - f1-score (micro avg)  0.81\n" +
			"2026-01-01 10:00:06,124  - 0 epochs without improvement\n" +
			"2026-01-01 10:00:07,123 epoch 2 - iter 10/100 - loss 1.1 - time (sec): 1.00 - samples/sec: " +
			"300.0 - lr: 0.1\n" +
			"2026-01-01 10:00:10,123 EPOCH 2 done: loss 1.0 - lr: 0.100000\n" +
			"2026-01-01 10:00:11,123 DEV : loss 0.4 - f1-score (micro avg)  0.85\n",
			[]string{"1 0 1.2 0.81", "2 0 1 0.85"}},
		{"Ignite", "" +
			"Training Results - Epoch: 1  Avg accuracy: 0.95 Avg loss: 0.17\n" +
			"Validation Results - Epoch: 1  Avg accuracy: 0.94 Avg loss: 0.19\n" +
			"Training Results - Epoch: 2  Avg accuracy: 0.97 Avg loss: 0.1\n" +
			"Validation Results - Epoch: 2  Avg accuracy: 0.96 Avg loss: 0.12\n",
			[]string{"1 0 0.17 0.94", "2 0 0.1 0.96"}},
		{"Chainer", "" +
			"epoch       main/loss   validation/main/loss  main/accuracy  validation/main/accuracy  " +
			"elapsed_time\n" +
			"1           0.191       0.0985                0.9423         0.9683                    3.2\n" +
			"2           0.0737      0.0855                0.9772         0.9731                    6.3\n",
			[]string{"1 0 0.191 0.9683", "2 0 0.0737 0.9731"}},
		{"Flax's examples", "" +
			"train epoch: 1, loss: 0.2311, accuracy: 93.05\n" +
			"eval epoch: 1, loss: 0.0606, accuracy: 98.05\n" +
			"train epoch: 2, loss: 0.0611, accuracy: 98.12\n" +
			"eval epoch: 2, loss: 0.0464, accuracy: 98.40\n",
			[]string{"1 0 0.2311 0.9805", "2 0 0.0611 0.984"}},
		{"spaCy", "" +
			"\x1b[1m\n" +
			"=========================== Training pipeline ===========================\x1b[0m\n" +
			"ℹ Pipeline: ['tok2vec', 'ner']\n" +
			"E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE \n" +
			"---  ------  ------------  --------  ------  ------  ------  ------\n" +
			"  0       0          0.00     50.00    0.00    0.00    0.00    0.00\n" +
			"  1     200         30.00   2000.00   50.00   50.10   49.00    0.50\n" +
			"  2     400         60.00   1500.00   60.00   61.00   59.00    0.60\n",
			[]string{"0 0 - -", "1 0 - -", "2 0 - -"}},
		{"ESPnet", "" +
			"[host] 2026-01-01 10:00:00,000 (trainer:338) INFO: 1epoch results: [train] iter_time=0.1, " +
			"loss=50.1, time=10 minutes and 5.2 seconds, total_count=100, [valid] loss=40.2, acc=0.51, " +
			"time=30.2 seconds\n" +
			"[host] 2026-01-01 10:11:00,000 (trainer:338) INFO: 2epoch results: [train] iter_time=0.1, " +
			"loss=40.1, time=10 minutes and 1.2 seconds, total_count=200, [valid] loss=30.2, acc=0.61, " +
			"time=30.2 seconds\n",
			[]string{"1 605.2 50.1 0.51", "2 601.2 40.1 0.61"}},
		{"MMEngine", "" +
			"2026/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][100/391]  lr: 1.0e-01  eta: " +
			"0:30:00  time: 0.05  data_time: 0.01  memory: 100  loss: 2.1\n" +
			"2026/01/01 10:00:20 - mmengine - INFO - Epoch(val) [1][79/79]    accuracy/top1: 45.1000  " +
			"accuracy/top5: 90.0  data_time: 0.01  time: 0.02\n" +
			"2026/01/01 10:00:30 - mmengine - INFO - Epoch(train)  [2][100/391]  lr: 1.0e-01  eta: " +
			"0:30:00  time: 0.05  data_time: 0.01  memory: 100  loss: 1.8\n" +
			"2026/01/01 10:00:50 - mmengine - INFO - Epoch(val) [2][79/79]    accuracy/top1: 55.1000  " +
			"accuracy/top5: 93.0  data_time: 0.01  time: 0.02\n",
			[]string{"1 0 2.1 0.451", "2 0 1.8 0.551"}},
		{"steps that count from 0", "" +
			"[Epoch 1/3] [Batch 0/10] [D loss: 0.6] [G loss: 0.7]\n" +
			"[Epoch 1/3] [Batch 9/10] [D loss: 0.5] [G loss: 0.8]\n" +
			"[Epoch 2/3] [Batch 0/10] [D loss: 0.4] [G loss: 0.9]\n" +
			"[Epoch 2/3] [Batch 9/10] [D loss: 0.4] [G loss: 0.9]\n" +
			"[Epoch 3/3] [Batch 9/10] [D loss: 0.3] [G loss: 1.0]\n",
			[]string{"1 0 - -", "2 0 - -", "3 0 - -"}},
		{"decimal commas", "" +
			"Epoch 1: loss 0,51 acc 0,80\n" +
			"Epoch 2: loss 0,41 acc 0,85\n",
			[]string{"1 0 0.51 0.8", "2 0 0.41 0.85"}},
		{"a frame", "" +
			"│ Epoch 1/2 │ loss 0.5 │ val_acc 0.8 │\n" +
			"│ Epoch 2/2 │ loss 0.4 │ val_acc 0.9 │\n",
			[]string{"1 0 0.5 0.8", "2 0 0.4 0.9"}},
		{"logfmt", "" +
			"time=\"2026-01-01T10:00:00Z\" level=info msg=\"epoch finished\" epoch=1 val_accuracy=0.91 " +
			"duration=12.1s\n" +
			"time=\"2026-01-01T10:00:10Z\" level=info msg=\"epoch finished\" epoch=2 val_accuracy=0.92 " +
			"duration=12.2s\n",
			[]string{"1 2026 - 0.91", "2 2026 - 0.92"}},
		{"a dictionary without epoch", "" +
			"epoch 0: {'accuracy': 0.7, 'f1': 0.8}\n" +
			"epoch 1: {'accuracy': 0.8, 'f1': 0.85}\n" +
			"epoch 2: {'accuracy': 0.82, 'f1': 0.86}\n",
			[]string{"0 0 - 0.7", "1 0 - 0.8", "2 0 - 0.82"}},
		{"the epoch at the end", "" +
			"Train loss: 0.5 | Val acc: 0.8 | Epoch: 1\n" +
			"Train loss: 0.4 | Val acc: 0.85 | Epoch: 2\n",
			[]string{"1 0 0.5 0.8", "2 0 0.4 0.85"}},
		{"mean intersection over union", "Epoch 1/2: loss=0.5 mIoU=61.2\nEpoch 2/2: loss=0.4 mIoU=65.2\n",
			[]string{"1 0 0.5 0.612", "2 0 0.4 0.652"}},
		{"the summary of a logger", "wandb: Run summary:\nwandb:      epoch 3\nwandb: val_acc 0.9\n", nil},
		{"timm", `
Train: 0 [   0/100 (  0%)]  Loss: 6.9 (6.9)  Time: 1.2s,  26/s  LR: 1.0e-5  Data: 0.9
Test: [   0/10]  Time: 0.5 (0.5)  Loss: 6.8 (6.8)  Acc@1: 1.0 (1.0)  Acc@5: 3.0
 * Acc@1 1.2 (98.8) Acc@5 4.0 (96.0)
Train: 1 [   0/100 (  0%)]  Loss: 5.9 (5.9)  Time: 1.2s,  26/s  LR: 1.0e-5
 * Acc@1 11.2 (88.8) Acc@5 24.0 (76.0)
`, []string{"0 0 6.9 0.012", "1 0 5.9 -"}},
		{"PaddlePaddle", `
Epoch 1/2
step 938/938 [==============================] - loss: 0.1 - acc: 0.94 - 12ms/step
Eval begin...
step 157/157 [==============================] - loss: 0.05 - acc: 0.96 - 5ms/step
Eval samples: 10000
Epoch 2/2
step 938/938 [==============================] - loss: 0.08 - acc: 0.97 - 12ms/step
Eval begin...
step 157/157 [==============================] - loss: 0.04 - acc: 0.975 - 5ms/step
Eval samples: 10000
`, []string{"1 11.256 0.1 0.96", "2 11.256 0.08 0.975"}},
		{"skorch", `
  epoch    train_loss    valid_acc    valid_loss     dur
-------  ------------  -----------  ------------  ------
      1        0.6905       0.6150        0.6749  0.1234
      2        0.6505       0.7150        0.6149  0.1134
`, []string{"1 0.1234 0.6905 0.615", "2 0.1134 0.6505 0.715"}},
		{"fairseq", `
2026-11-22 09:07:21 | INFO | train | {"epoch": 1, "train_loss": "5.2", "train_wall": "12"}
2026-11-22 09:07:21 | INFO | valid | {"epoch": 1, "valid_loss": "4.2"}
2026-11-22 09:07:21 | INFO | train | {"epoch": 2, "train_loss": "4.2", "train_wall": "11"}
`, []string{"1 12 5.2 -", "2 11 4.2 -"}},
		{"YOLO", "" +
			"      Epoch    GPU_mem   box_loss   cls_loss   Instances       Size\n" +
			"\r        1/2         0G      1.2      3.4         12        640:  50%|█████     | 2/4" +
			"\r        1/2         0G      1.1      3.3         12        640: 100%|██████████| 4/4\n",
			[]string{"1 0 - -"}},
		{"PyTorch's language model", `
| epoch   1 |  2800/ 2983 batches | lr 5.00 | ms/batch 30.1 | loss  6.1 | ppl  500.1
| end of epoch   1 | time: 90.12s | valid loss  5.9 | valid ppl   370.12
| epoch   2 |   200/ 2983 batches | lr 5.00 | ms/batch 30.1 | loss  5.9 | ppl  380.1
| end of epoch   2 | time: 89.12s | valid loss  5.5 | valid ppl   270.12
`, []string{"1 90.12 5.9 -", "2 89.12 5.5 -"}},
		{"CatBoost for minutes", "0:\tlearn: 0.81\ttotal: 1m 12s\tremaining: 2m\n" +
			"1:\tlearn: 0.91\ttotal: 2m 20s\tremaining: 0us\n", []string{"1 72 - -", "2 68 - -"}},
		{"steps of an epoch", `
Epoch [1/2], Step [100/200], Loss: 0.9
Epoch [1/2], Step [200/200], Loss: 0.7
Epoch [2/2], Step [100/200], Loss: 0.6
Epoch [2/2], Step [200/200], Loss: 0.5
Accuracy of the model on the 10000 test images: 97.1 %
`, []string{"1 0 0.7 -", "2 0 0.5 -"}},
		{"lines of several ranks", `
[rank 0] Epoch 1 | val acc 0.5 | 2.0s
[rank 1] Epoch 1 | val acc 0.4 | 2.1s
[rank 1] Epoch 2 | val acc 0.5 | 2.1s
[rank 0] Epoch 2 | val acc 0.6 | 2.0s
`, []string{"1 2 - 0.5", "2 2 - 0.6"}},
		{"error rate", "epoch 1: valid error rate 12.5%\nepoch 2: valid error rate 10.0%\n",
			[]string{"1 0 - 0.875", "2 0 - 0.9"}},
		{"validation after the end of the first epoch", `
epoch 1 train acc 0.6 test acc 0.5
epoch 1 val acc 0.55
epoch 2 train acc 0.7 test acc 0.6
epoch 2 val acc 0.65
`, []string{"1 0 - 0.55", "2 0 - 0.65"}},
		{"a tqdm bar and a line of validation", "" +
			"\rEpoch 1/2:  50%|█████     | 5/10 [00:05<00:05, 1.00it/s, loss=0.9]" +
			"\rEpoch 1/2: 100%|██████████| 10/10 [00:10<00:00, 1.00it/s, loss=0.8]\nval acc: 0.7\n" +
			"\rEpoch 2/2:  50%|█████     | 5/10 [00:05<00:05, 1.00it/s, loss=0.7]" +
			"\rEpoch 2/2: 100%|██████████| 10/10 [00:10<00:00, 1.00it/s, loss=0.6]\nval acc: 0.8\n",
			[]string{"1 0 0.8 0.7", "2 0 0.6 0.8"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := fromOne(test.want)
			requested := 0
			if n := len(want); n > 0 {
				_, _ = fmt.Sscan(want[n-1], &requested)
			}
			got := read(requested, test.text, true)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
		})
	}
}

// fromOne numbers epochs from 1, and leaves out their durations.
func fromOne(reports []string) (all []string) {
	base := 1
	for i, text := range reports {
		f := strings.Fields(text)
		n, _ := strconv.Atoi(f[0])
		if i == 0 && n == 0 {
			base = 0
		}
		s := fmt.Sprint(n + 1 - base)
		for _, v := range f[2:] {
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				v = fmt.Sprintf("%.4g", x)
			}
			s += " " + v
		}
		all = append(all, s)
	}
	return all
}

// A suggested pattern reads the epochs of the line that it was made of.
func TestParser_SuggestsAPattern(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{
			"started\ne1 done, quality 0.91\ne2 done, quality 0.93\ne3 done, quality 0.95\n",
			nil, // no number counts: e1 is a word
		},
		{
			"pass 1 finished: acc=0.91 loss=1e-1 (12 s)\npass 2 finished: acc=0.93 loss=9e-2 (11 s)\n",
			[]string{"1 0 0.1 0.91", "2 0 0.09 0.93"},
		},
	} {
		p := newParser(func() []lineFormat { return nil })
		p.recogniser = newRecogniser(0)
		p.Write(0, []byte(test.text), noon)
		_, pattern := p.Suggest()
		if pattern == "" {
			if test.want != nil {
				t.Errorf("no pattern for %q", test.text)
			}
			continue
		}
		if diff := cmp.Diff(test.want, parse(t, FormatPattern, pattern, test.text)); diff != "" {
			t.Errorf("reports by %q (-want +got):\n%s", pattern, diff)
		}
	}
}

// Text that resembles epochs, but is not the output of a training.
func TestParser_IgnoresOtherText(t *testing.T) {
	for _, text := range []string{
		"2026-11-22 09:07:21 GET /epoch/17 200 0.3ms\n",
		"Number of epochs: 10\nbatch size: 32\nloading data... done in 3.2s\n",
		"max epoch 10, warmup epoch 2\n",
		"leader epoch 5 for partition topic-0\nleader epoch 6 for partition topic-0\n",
		"Iteration 1, inertia 12.5\nIteration 2, inertia 11.5\n",
		"step 250: train loss 1.9, val loss 2.0\n",
		"[1/3] Compiling a.c\n[2/3] Compiling b.c\n[3/3] Linking\n",
		"PASS test_epoch (0.01s)\naccuracy 0.99\n",
		"Epoch 1\n",
	} {
		if got := parse(t, FormatAuto, "", text); len(got) > 0 {
			t.Errorf("reports of %q = %v, want none", text, got)
		}
	}
}
