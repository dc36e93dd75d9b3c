package evidence_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"courier/regress/evidence"
)

// With three runs of four epochs on each of two node types, measured pairs are predicted well,
// batch sizes held out on one type are predicted from the other, and a pair without runs is not
// predicted.
func TestFigures_NodeTypes(t *testing.T) {
	study := readStudy(t)
	var measured, borrowed, heldBorrowed scoreMean
	for repetition := range uint64(repetitions) {
		random := rand.New(rand.NewPCG(repetition, 11))
		var runs []evidence.Run
		for _, d := range study.datasets {
			for i, b := range study.batches[d] {
				k := zeusSetting{d, b}
				for _, gpu := range []string{"v100", "p100"} {
					seconds := study.seconds[gpu][k][250]
					if seconds == 0 || gpu == "p100" && (d == "squad" || i%2 == 1) {
						continue
					}
					for _, r := range study.trainings[k][:3] {
						runs = append(runs, runOf(r, gpu, draw(random, seconds, min(4, r.length))))
					}
				}
			}
		}
		p := fitted(t, runs)
		for _, d := range study.datasets {
			for i, b := range study.batches[d] {
				for _, gpu := range []string{"v100", "p100"} {
					seconds := study.seconds[gpu][zeusSetting{d, b}][250]
					if seconds == 0 {
						continue
					}
					got := p.Time(configurationOf(d, b, gpu), 4)
					if d == "squad" && gpu == "p100" {
						if got.Known() || got.Support.Promisable() {
							t.Fatalf("%s never ran on %s, predicted %+v", d, gpu, got)
						}
						continue
					}
					took := 0.0
					for _, x := range draw(random, seconds, 4) {
						took += x
					}
					off := math.Abs(got.Median()/took - 1)
					if gpu == "p100" && i%2 == 1 {
						borrowed.add(off)
						heldBorrowed.count(took <= got.Quantile(confidence))
						continue
					}
					measured.add(off)
				}
			}
		}
	}
	t.Logf("measured pairs %.2f %%; batch sizes left out on the second type %.2f %%, coverage %.3f",
		100*measured.value(), 100*borrowed.value(), heldBorrowed.value())
	if measured.value() > 0.04 || borrowed.value() > 0.05 || heldBorrowed.value() < 0.92 {
		t.Error("want at most 4 %, 5 %, and a coverage of 0.92 or more")
	}
}

// Nodes with unknown hardware are separated by their runs: P100 and V100 are separated, three V100s
// are not, even if a power limit slows some batch sizes of one model on two of them.
func TestFit_TellsNodesApartByTheirRuns(t *testing.T) {
	study := readStudy(t)
	random := rand.New(rand.NewPCG(3, 11))
	var runs []evidence.Run
	add := func(node string, k zeusSetting, seconds float64) {
		for _, r := range study.trainings[k][:3] {
			run := runOf(r, "", draw(random, seconds, min(4, r.length)))
			run.ID, run.Node = node+run.ID, node
			runs = append(runs, run)
		}
	}
	for _, d := range study.datasets {
		for _, b := range study.batches[d] {
			k := zeusSetting{d, b}
			add("v100", k, study.seconds["v100"][k][250])
			if s := study.seconds["p100"][k][250]; s > 0 && d != "squad" {
				add("p100", k, s)
			}
			if slices.Contains(shifted[d], b) {
				add("v100-1", k, study.seconds["v100"][k][100])
			}
		}
	}
	h, p := fit(t, runs)
	if len(h.NodeGroups) != 1 || h.NodeGroups[0].Node != "p100" {
		t.Fatalf("groups are %+v, want p100 alone", h.NodeGroups)
	}
	for _, node := range []string{"v100", "v100-1", "new"} {
		if got := p.NodeType(node, ""); got != "" {
			t.Errorf("the node type of %s is %q, want the common one", node, got)
		}
	}
	slow := p.NodeType("p100", "")
	for _, d := range study.datasets {
		b := study.batches[d][2]
		got := p.Time(configurationOf(d, b, slow), 4)
		if d == "squad" {
			if got.Known() {
				t.Errorf("squad never ran on p100, predicted %+v", got)
			}
			continue
		}
		off := got.Median()/(4*study.seconds["p100"][zeusSetting{d, b}][250]) - 1
		if math.Abs(off) > 0.06 {
			t.Errorf("%s, batch size %d on p100: %g s with an error of %.1f %%, want at most 6 %%",
				d, b, got.Median(), 100*off)
		}
	}
	run := runs[0]
	run.Node = "p100"
	if r, ok := p.Residual(&run); !ok || r.NodeType != slow {
		t.Errorf("the residual on p100 has the node type %q, want %q", r.NodeType, slow)
	}
}
