package regress_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"courier/regress"
	"github.com/google/go-cmp/cmp"
)

// sign updates the digest of a manifest for a changed file, so that a test reaches the
// parser.
func sign(t testing.TB, model, manifest []byte) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(model)
	m["sha256"], m["length"] = hex.EncodeToString(digest[:]), len(model)
	signed, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestDecode_ReturnsWhatWasEncoded(t *testing.T) {
	single := paperLike(96, 1)
	single.Features, single.Columns = single.Features[:1], single.Columns[:1]
	bound := paperLike(96, 1)
	bound.Features[0].Monotone = -1
	for name, d := range map[string]*regress.Dataset{
		"five features": paperLike(288, 1),
		"one feature":   single,
		"signs":         bound,
	} {
		o := small()
		o.Trees = 20
		r, err := regress.FitForest(context.Background(), d, o)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, name, r)
		b := smallBoosting()
		for b.Criterion, b.Level = range map[regress.Criterion]float64{
			regress.Squared:  0,
			regress.Absolute: 0,
			regress.Huber:    0.8,
			regress.Quantile: 0.9,
		} {
			r, err := regress.FitBoosting(context.Background(), d, b)
			if err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, name+", boosting "+string(b.Criterion), r)
		}
	}
}

// checkRoundTrip encodes, decodes and encodes a regressor.
func checkRoundTrip(t *testing.T, name string, r *regress.Regressor) {
	t.Helper()
	model, manifest := encode(t, r)
	got, err := regress.Decode(model, manifest)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	modelAgain, manifestAgain := encode(t, got)
	if !bytes.Equal(model, modelAgain) {
		t.Errorf("%s: the file differs after decoding and encoding", name)
	}
	if diff := cmp.Diff(string(manifest), string(manifestAgain)); diff != "" {
		t.Errorf("%s: the manifest differs after decoding and encoding:\n%s", name, diff)
	}
}

func TestDecode_RefusesAnyChangedByte(t *testing.T) {
	model, manifest := example(t)
	for i := range model {
		changed := bytes.Clone(model)
		changed[i] ^= 1
		if _, err := regress.Decode(changed, manifest); !errors.Is(err, regress.ErrBadFile) {
			t.Fatalf("byte %d changed: Decode = %v, want ErrBadFile", i, err)
		}
		if _, err := regress.Decode(model[:i], sign(t, model[:i], manifest)); !errors.Is(err,
			regress.ErrBadFile) {
			t.Fatalf("cut to %d bytes: Decode = %v, want ErrBadFile", i, err)
		}
	}
}

func TestDecode_NamesLineAndField(t *testing.T) {
	model, manifest := example(t)
	for _, c := range []struct{ name, old, new, says string }{
		{"another version", "version=v3", "version=v4", `line 2: "version=v4", want "version=v3"`},
		{"carriage returns", "version=v3\n", "version=v3\r\n", `line 2: "version=v3\r"`},
		{
			"another objective", "objective=regression_l1", "objective=binary",
			`line 7: objective "binary"`,
		},
		{
			"other features", "feature_names=batch_size processes",
			"feature_names=batch_size cpus", "line 9: ",
		},
		{"another range", "feature_infos=[64:512]", "feature_infos=[64:513]", "line 10: "},
		{
			"a size too many", "tree_sizes=298 230", "tree_sizes=298 230 800",
			"line 12: tree_sizes: 1328 bytes of trees",
		},
		{"a size too few", "tree_sizes=298 230", "tree_sizes=298", `want "end of trees"`},
		{
			"a wrong size", "tree_sizes=298 230", "tree_sizes=297 231",
			"tree 0: tree_sizes says 297 bytes, the tree has 298",
		},
		{
			"a negative size", "tree_sizes=298 230", "tree_sizes=-298 230",
			`tree_sizes: "-298" is no length`,
		},
		{
			"2e9 leaves", "num_leaves=3", "num_leaves=2000000000",
			`line 14: tree 0: num_leaves: "2000000000"`,
		},
		{"no leaves", "num_leaves=3", "num_leaves=0", "num_leaves"},
		{"categories", "num_cat=0", "num_cat=1", `line 15: tree 0: "num_cat=1"`},
		{
			"feature out of range", "split_feature=0 1", "split_feature=0 2",
			`line 16: tree 0: split_feature, entry 1: "2"`,
		},
		{
			"feature missing", "split_feature=0 1", "split_feature=0",
			"split_feature has 1 entries, want 2",
		},
		{
			"NaN threshold", "threshold=96 2.5", "threshold=NaN 2.5",
			`line 18: tree 0: threshold, entry 0: "NaN"`,
		},
		{"infinite threshold", "threshold=96 2.5", "threshold=1e999 2.5", "threshold, entry 0"},
		{"hexadecimal threshold", "threshold=96 2.5", "threshold=0x60p0 2.5", "threshold, entry 0"},
		{"categorical decision", "decision_type=2 2", "decision_type=3 2", `decision_type "3"`},
		{"zero as missing", "decision_type=2 2", "decision_type=6 2", `decision_type "6"`},
		{
			"a cycle", "left_child=1 -1", "left_child=0 -1",
			"tree 0: left_child, right_child: node 0 is used twice",
		},
		{"a node used twice", "right_child=-2 -3", "right_child=1 -3", "node 1 is used twice"},
		{"a leaf used twice", "right_child=-2 -3", "right_child=-2 -2", "leaf 1 is used twice"},
		{"a node never reached", "left_child=1 -1", "left_child=-1 1", "never reached"},
		{"a child out of range", "left_child=1 -1", "left_child=2 -1", `left_child, entry 0: "2"`},
		{
			"a leaf out of range", "right_child=-2 -3", "right_child=-2 -4",
			`right_child, entry 1: "-4"`,
		},
		{
			"NaN leaf", "leaf_value=412.75", "leaf_value=nan",
			`line 22: tree 0: leaf_value, entry 0: "nan"`,
		},
		{"empty leaf", "leaf_value=412.75 118.5", "leaf_value=412.75 ", "leaf_value, entry 1"},
		{"negative count", "leaf_count=4 6 2", "leaf_count=-4 6 2", "leaf_count, entry 0"},
		{"linear trees", "is_linear=0", "is_linear=1", `"is_linear=1"`},
		{"no shrinkage", "shrinkage=1", "shrinkage=0", "shrinkage"},
		{"three blank lines", "shrinkage=1\n\n\n", "shrinkage=1\n\n\n\n", "tree"},
		{"a tree's number", "Tree=1", "Tree=2", `tree 1: "Tree=2", want "Tree=1"`},
		{"unknown importance", "processes=1\n", "cpus=1\n", "feature_importances"},
		{
			"something after the end", "pandas_categorical:null\n", "pandas_categorical:null\nx\n",
			"2 bytes follow the end",
		},
		{"XGBoost", string(model), "{\"learner\":{}}\n", `line 1: "{\"learner\":{}}", want "tree"`},
		{"XGBoost, binary", string(model), "binf\x00\x00\x00\x00", "line 1: the file is truncated"},
	} {
		changed := []byte(strings.Replace(string(model), c.old, c.new, 1))
		if bytes.Equal(changed, model) {
			t.Fatalf("%s: nothing was changed", c.name)
		}
		_, err := regress.Decode(changed, sign(t, changed, manifest))
		if !errors.Is(err, regress.ErrBadFile) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Decode = %v, want ErrBadFile with %q", c.name, err, c.says)
		}
	}
}

func TestDecode_RefusesManifests(t *testing.T) {
	model, manifest := example(t)
	for _, c := range []struct{ old, new, says string }{
		{`"format": 1`, `"format": 2`, "format is 2"},
		{`"transform": "none"`, `"transform": "sqrt"`, "transform"},
		{`"smearing": 1`, `"smearing": 0`, "smearing is 0"},
		{`"spread": 150`, `"spread": -1`, "spread is -1"},
		{`"name": "processes"`, `"name": "a=b"`, "letters, digits"},
		{`"name": "processes"`, `"name": "batch_size"`, "used twice"},
		{`"max": 40`, `"max": 0`, "range is 1 to 0"},
		{`"max": 40`, `"max": 40, "seen": [0]`, "level 0 is out of range, there are 0"},
		{`"count": 3`, `"count": 30`, "3 residuals represent 30 examples"},
		{`-20,`, `20,`, "residual 1 is 0"},
		{`"criterion": "absolute"`, `"criterion": "gini"`, "unknown objective"},
		{`"length": `, `"length": 1`, "manifest says 1"},
		{`"sha256": "`, `"sha256": "0`, "sha256"},
		{`{`, `[`, "manifest"},
	} {
		changed := strings.Replace(string(manifest), c.old, c.new, 1)
		if changed == string(manifest) {
			t.Fatalf("%s: nothing was changed", c.old)
		}
		_, err := regress.Decode(model, []byte(changed))
		if !errors.Is(err, regress.ErrBadFile) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Decode = %v, want ErrBadFile with %q", c.new, err, c.says)
		}
	}
}

// Decoding any file allocates at most a multiple of its length.
func TestDecode_MemoryIsBoundedByTheFile(t *testing.T) {
	model, manifest := example(t)
	hostile := map[string]string{
		"many leaves": strings.Replace(string(model), "num_leaves=3", "num_leaves=150000", 1) +
			strings.Repeat(
				"x", 1<<20,
			),
		"many trees": strings.Replace(string(model), "298 230", strings.Repeat("1 ", 1<<19)+"1",
			1),
		"one long row": strings.Replace(string(model), "leaf_value=",
			"leaf_value="+strings.Repeat("1 ", 1<<19), 1),
	}
	for name, text := range hostile {
		signed := sign(t, []byte(text), manifest)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := regress.Decode([]byte(text), signed); !errors.Is(err, regress.ErrBadFile) {
			t.Errorf("%s: Decode = %v, want ErrBadFile", name, err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 20*uint64(len(text)) {
			t.Errorf("%s: %d bytes were allocated for a file of %d", name, used, len(text))
		}
	}
}

// example returns the golden file and a manifest that fits it.
func example(t testing.TB) (model, manifest []byte) {
	t.Helper()
	return regress.Golden(t)
}

func FuzzDecode(f *testing.F) {
	model, manifest := example(f)
	f.Add(model, manifest, true)
	f.Add(model[:200], manifest, true)
	f.Add([]byte(strings.Replace(string(model), "left_child=1 -1", "left_child=0 -1", 1)),
		manifest, true)
	f.Add([]byte(strings.Replace(string(model), "average_output\n", "", 1)), manifest, true)
	f.Add(model, []byte(strings.Replace(string(manifest), `"none"`, `"log"`, 1)), false)
	f.Fuzz(func(t *testing.T, model, manifest []byte, signed bool) {
		var fields map[string]any
		if signed && json.Unmarshal(manifest, &fields) == nil && fields != nil {
			manifest = sign(t, model, manifest)
		}
		r, err := regress.Decode(model, manifest)
		if err != nil {
			if !errors.Is(err, regress.ErrBadFile) {
				t.Fatalf("Decode = %v, want ErrBadFile", err)
			}
			return
		}
		p, err := regress.Load(model, manifest)
		if err != nil {
			if !errors.Is(err, regress.ErrBadFile) {
				t.Fatalf("Load = %v: two readers disagree", err)
			}
			return
		}
		row := make([]float64, len(p.Features()))
		if _, err := p.Predict(row); err != nil {
			t.Fatal(err)
		}
		model, manifest = encode(t, r)
		if _, err := regress.Decode(model, manifest); err != nil {
			t.Fatalf("the decoded regressor cannot be encoded and decoded: %v", err)
		}
	})
}
