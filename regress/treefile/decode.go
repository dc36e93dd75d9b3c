package treefile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// decode reads the tree of a file. It checks that every node and leaf is reached exactly once, and
// that Encode writes the same bytes for the tree, so that nothing else in the file needs a check.
// The memory is bounded by the length of the file.
func decode(model []byte, m *Manifest) (*Tree, error) {
	fields := map[string]string{}
	_, block, _ := strings.Cut(string(model), "\nTree=0\n")
	for line := range strings.Lines(block) {
		if line == "\n" {
			break
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		fields[name] = value
	}
	t := &Tree{features: m.Features}
	if err := t.read(fields); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	if want := t.encode(); !bytes.Equal(model, want) {
		return nil, fmt.Errorf("%w: %s", ErrBadFile, firstDifference(string(model), string(want)))
	}
	return t, nil
}

// read sets nodes and leaves from the fields of a tree.
func (t *Tree) read(fields map[string]string) error {
	features, err := readList("split_feature", fields, strconv.Atoi)
	if err != nil {
		return err
	}
	thresholds, err := readList("threshold", fields, readFloat)
	if err != nil {
		return err
	}
	left, err := readList("left_child", fields, strconv.Atoi)
	if err != nil {
		return err
	}
	right, err := readList("right_child", fields, strconv.Atoi)
	if err != nil {
		return err
	}
	if t.leaves, err = readList("leaf_value", fields, readFloat); err != nil {
		return err
	}
	n := len(features)
	if len(thresholds) != n || len(left) != n || len(right) != n || len(t.leaves) != n+1 {
		return fmt.Errorf("%d features, %d thresholds, %d and %d children and %d leaves "+
			"are not a tree", n, len(thresholds), len(left), len(right), len(t.leaves))
	}
	for i := range n {
		t.nodes = append(t.nodes, node{features[i], thresholds[i], left[i], right[i]})
	}
	return nil
}

func readFloat(entry string) (float64, error) {
	x, err := strconv.ParseFloat(entry, 64)
	if err == nil && !isFinite(x) {
		err = strconv.ErrRange
	}
	return x, err
}

// readList reads a field with entries that are separated by spaces.
func readList[T any](
	name string, fields map[string]string, read func(entry string) (T, error),
) (all []T, err error) {
	for i, entry := range strings.Fields(fields[name]) {
		x, err := read(entry)
		if err != nil {
			return nil, fmt.Errorf("%s, entry %d: %.60q is no finite number", name, i, entry)
		}
		all = append(all, x)
	}
	return all, nil
}

// maxDepth bounds recursion. Trees of Grow are far less deep: each comparison halves the points, or
// is one of two for its feature.
const maxDepth = 256

// check returns an error unless every node and leaf is reached exactly once from the root.
func (t *Tree) check() error {
	nodes, leaves := make([]bool, len(t.nodes)), make([]bool, len(t.leaves))
	return t.checkChild(t.root(), 0, nodes, leaves)
}

// checkChild checks a subtree and marks its nodes and leaves as reached. A tree of n nodes that
// reaches none of them twice also reaches all n+1 leaves.
func (t *Tree) checkChild(child, depth int, nodes, leaves []bool) error {
	reached, i := nodes, child
	if child < 0 {
		reached, i = leaves, -1-child
	}
	if i >= len(reached) || reached[i] || depth > maxDepth {
		return fmt.Errorf("child %d does not exist, is used twice, or is too deep", child)
	}
	reached[i] = true
	if child < 0 {
		return nil
	}
	n := &t.nodes[child]
	if n.feature < 0 || n.feature >= len(t.features) {
		return fmt.Errorf("node %d: there is no feature %d", child, n.feature)
	}
	if err := t.checkChild(n.left, depth+1, nodes, leaves); err != nil {
		return err
	}
	return t.checkChild(n.right, depth+1, nodes, leaves)
}

// root returns the root as a child.
func (t *Tree) root() int {
	if len(t.nodes) == 0 {
		return -1
	}
	return 0
}

// firstDifference describes the first line in which two texts differ.
func firstDifference(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			return fmt.Sprintf("line %d is %.60q, want %.60q", i+1, gotLines[i], wantLines[i])
		}
	}
	return fmt.Sprintf("the file has %d lines, want %d", len(gotLines), len(wantLines))
}
