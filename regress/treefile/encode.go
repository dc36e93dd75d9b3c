package treefile

import (
	"fmt"
	"strconv"
	"strings"
)

// Encode returns the tree as LightGBM text of version 3, and its manifest. m contains what the
// caller knows; Encode sets the features, the format and the digest.
func (t *Tree) Encode(m Manifest) (model, manifest []byte, err error) {
	model = t.encode()
	m.Features = t.features
	manifest, err = m.encode(model)
	return model, manifest, err
}

// encode returns the text of the file. It has only fields that LightGBM or leaves needs, and no
// computed number, so that the same tree has the same text on every processor.
func (t *Tree) encode() []byte {
	tree := t.encodeTree()
	names, infos := make([]string, len(t.features)), make([]string, len(t.features))
	for i, f := range t.features {
		names[i], infos[i] = f.Name, "none"
		if f.Min != f.Max {
			infos[i] = "[" + formatFloat(f.Min) + ":" + formatFloat(f.Max) + "]"
		}
	}
	return fmt.Appendf(nil, `tree
version=v3
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=%d
objective=regression
feature_names=%s
feature_infos=%s
tree_sizes=%d

%send of trees

parameters:
[boosting: gbdt]
[objective: regression]
end of parameters

pandas_categorical:null
`, len(names)-1, strings.Join(names, " "), strings.Join(infos, " "), len(tree), tree)
}

func (t *Tree) encodeTree() string {
	n := len(t.nodes)
	// A decision of type 2 compares numbers, without missing values.
	lines := []string{
		"Tree=0",
		"num_leaves=" + strconv.Itoa(len(t.leaves)),
		"num_cat=0",
		"split_feature=" + list(n, func(i int) string { return strconv.Itoa(t.nodes[i].feature) }),
		"threshold=" + list(n, func(i int) string { return formatFloat(t.nodes[i].threshold) }),
		"decision_type=" + list(n, func(int) string { return "2" }),
		"left_child=" + list(n, func(i int) string { return strconv.Itoa(t.nodes[i].left) }),
		"right_child=" + list(n, func(i int) string { return strconv.Itoa(t.nodes[i].right) }),
		"leaf_value=" + list(len(t.leaves), func(i int) string { return formatFloat(t.leaves[i]) }),
		"is_linear=0",
		"shrinkage=1",
	}
	return strings.Join(lines, "\n") + "\n\n\n"
}

// list returns n entries with single spaces between them.
func list(n int, entry func(i int) string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = entry(i)
	}
	return strings.Join(entries, " ")
}

// formatFloat returns the shortest form that reads back as the same number.
func formatFloat(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
