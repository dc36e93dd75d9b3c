package output

import "testing"

func TestColumnOf(t *testing.T) {
	for _, c := range []struct {
		label string
		want  Quantity
		held  bool
		train bool
	}{
		{"val_accuracy", QuantityAccuracy, true, false}, {"ValAcc", QuantityAccuracy, true, false},
		{"accuracy", QuantityAccuracy, false, false}, {"train_acc", QuantityAccuracy, false, true},
		{"metrics/mAP50(B)", QuantityAccuracy, false, false},
		{"metrics.val_accuracy", QuantityAccuracy, true, false},
		{"eval_f1", QuantityAccuracy, true, false},
		{"mean_accuracy", QuantityAccuracy, false, false},
		{"test_error", QuantityErrorRate, true, false}, {"err-top1", QuantityErrorRate, false, false},
		{"Top-1 err. (%)", QuantityErrorRate, false, false}, {"1 - val_acc", QuantityErrorRate, true, false},
		{"1-shot acc", QuantityAccuracy, false, false}, {"Top-5 err.", QuantityNone, false, false},
		{"wer", QuantityErrorRate, false, false},
		{"train_loss_epoch", QuantityLoss, false, true}, {"loss", QuantityLoss, false, false},
		{"best_val_acc", QuantityNone, true, false}, {"top5_accuracy", QuantityNone, false, false},
		{"lr", QuantityNone, false, false}, {"train/box_loss", QuantityNone, false, true},
		{"params_batch_size", QuantityNone, false, false},
	} {
		got := ColumnOf(c.label)
		if got.Quantity != c.want || got.IsHeldOut != c.held || got.IsTraining != c.train {
			t.Errorf("ColumnOf(%q) = %+v, want quantity %d, held out %t, training %t", c.label, got, c.want,
				c.held, c.train)
		}
	}
	if a, b := ColumnOf("metrics/mAP50(B)"), ColumnOf("metrics/mAP50-95(B)"); a.Rank > b.Rank {
		t.Errorf("mAP50 has rank %d, behind mAP50-95 with %d", a.Rank, b.Rank)
	}
}
