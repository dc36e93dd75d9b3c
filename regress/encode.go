package regress

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// columns returns the feature names of the file: the manifest's, plus a constant one for a
// single feature, because readers reject files with one feature.
func (m *Manifest) columns() []string {
	var names []string
	for _, f := range m.Features {
		names = append(names, f.Name)
	}
	if len(names) == 1 {
		pad := "constant"
		if names[0] == pad {
			pad = "constant_2"
		}
		names = append(names, pad)
	}
	return names
}

// objective returns LightGBM's name of the loss.
func (m *Manifest) objective() string {
	switch {
	case m.Forest != nil:
		return m.Forest.Criterion.objective()
	case m.Boosting != nil:
		return m.Boosting.Criterion.objective()
	}
	return Absolute.objective()
}

// EncodeModel returns the trees as LightGBM text of version 3. LightGBM and
// leaves read it; they predict the transformed target (its logarithm under Log).
func (r *Regressor) EncodeModel() []byte {
	var trees []byte
	sizes := make([]int, len(r.trees))
	for i := range r.trees {
		before := len(trees)
		trees = r.trees[i].encode(trees, i)
		sizes[i] = len(trees) - before
	}
	b := r.header(sizes)
	b = append(b, trees...)
	return r.footer(b)
}

func (r *Regressor) header(sizes []int) []byte {
	m := &r.Manifest
	names := m.columns()
	e := encoder{}
	e.line("tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0")
	e.line("max_feature_idx=" + strconv.Itoa(len(names)-1))
	e.line("objective=" + m.objective())
	if r.average {
		e.line("average_output")
	}
	e.list("feature_names", len(names), func(b []byte, i int) []byte {
		return append(b, names[i]...)
	})
	if signs := m.signs(); slices.ContainsFunc(signs, func(s int) bool { return s != 0 }) {
		e.list("monotone_constraints", len(names), func(b []byte, i int) []byte {
			return strconv.AppendInt(b, int64(signs[i]), 10)
		})
	}
	e.list("feature_infos", len(names), func(b []byte, i int) []byte {
		return append(b, m.info(i)...)
	})
	e.list("tree_sizes", len(sizes), func(b []byte, i int) []byte {
		return strconv.AppendInt(b, int64(sizes[i]), 10)
	})
	e.line("")
	return e
}

// signs returns the monotone sign of each column of the file.
func (m *Manifest) signs() []int {
	signs := make([]int, max(len(m.Features), 2))
	for i, f := range m.Features {
		signs[i] = f.Monotone
	}
	return signs
}

// info returns the range of column i of the file in LightGBM's format.
func (m *Manifest) info(i int) string {
	if i >= len(m.Features) || m.Features[i].Min == m.Features[i].Max {
		return "none"
	}
	b := appendFloat([]byte("["), m.Features[i].Min)
	b = appendFloat(append(b, ':'), m.Features[i].Max)
	return string(append(b, ']'))
}

func (t *tree) encode(b []byte, number int) []byte {
	e := encoder(b)
	nodes, leaves := len(t.nodes), len(t.leaves)
	e.line("Tree=" + strconv.Itoa(number))
	e.line("num_leaves=" + strconv.Itoa(leaves))
	e.line("num_cat=0")
	e.list("split_feature", nodes, func(b []byte, i int) []byte {
		return strconv.AppendInt(b, int64(t.nodes[i].feature), 10)
	})
	e.list("split_gain", nodes, func(b []byte, i int) []byte {
		return appendShort(b, t.nodes[i].gain)
	})
	e.list("threshold", nodes, func(b []byte, i int) []byte {
		return appendFloat(b, t.nodes[i].threshold)
	})
	e.list("decision_type", nodes, func(b []byte, i int) []byte { return append(b, '2') })
	e.list("left_child", nodes, func(b []byte, i int) []byte {
		return strconv.AppendInt(b, int64(t.nodes[i].left), 10)
	})
	e.list("right_child", nodes, func(b []byte, i int) []byte {
		return strconv.AppendInt(b, int64(t.nodes[i].right), 10)
	})
	e.list("leaf_value", leaves, func(b []byte, i int) []byte {
		return appendFloat(b, t.leaves[i].value)
	})
	e.list("leaf_weight", leaves, func(b []byte, i int) []byte {
		return appendFloat(b, t.leaves[i].weight)
	})
	e.list("leaf_count", leaves, func(b []byte, i int) []byte {
		return strconv.AppendInt(b, int64(t.leaves[i].count), 10)
	})
	e.list("internal_value", nodes, func(b []byte, i int) []byte {
		return appendShort(b, t.nodes[i].value)
	})
	e.list("internal_weight", nodes, func(b []byte, i int) []byte {
		return appendFloat(b, t.nodes[i].weight)
	})
	e.list("internal_count", nodes, func(b []byte, i int) []byte {
		return strconv.AppendInt(b, int64(t.nodes[i].count), 10)
	})
	e.line("is_linear=0\nshrinkage=1\n\n")
	return e
}

// footer writes the text after the trees: how often each feature splits, and the parameters that
// LightGBM requires.
func (r *Regressor) footer(b []byte) []byte {
	e := encoder(b)
	e.line("end of trees\n\nfeature_importances:")
	names, splits := r.Manifest.columns(), make([]int, max(len(r.Manifest.Features), 2))
	for _, t := range r.trees {
		for _, n := range t.nodes {
			splits[n.feature]++
		}
	}
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(splits[b], splits[a]) })
	for _, f := range order {
		if splits[f] > 0 {
			e.line(names[f] + "=" + strconv.Itoa(splits[f]))
		}
	}
	boosting := "gbdt"
	if r.average {
		boosting = "rf"
	}
	e.line("\nparameters:\n[boosting: " + boosting + "]\n[objective: " + r.Manifest.objective() +
		"]")
	e.line("end of parameters\n\npandas_categorical:null")
	return bytes.Clone(e)
}

// encoder is a text that grows by lines.
type encoder []byte

func (e *encoder) line(s string) {
	*e = append(append(*e, s...), '\n')
}

// list writes name=, n entries with single spaces between them, and a newline.
func (e *encoder) list(name string, n int, entry func(b []byte, i int) []byte) {
	b := append(append(*e, name...), '=')
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		b = entry(b, i)
	}
	*e = append(b, '\n')
}

// appendFloat writes the shortest form that reads back as the same number.
func appendFloat(b []byte, x float64) []byte {
	return strconv.AppendFloat(b, x, 'g', -1, 64)
}

// appendShort writes nine digits, enough for fields that explain and never predict; the file is a
// quarter shorter.
func appendShort(b []byte, x float64) []byte {
	return strconv.AppendFloat(b, x, 'g', 9, 64)
}
