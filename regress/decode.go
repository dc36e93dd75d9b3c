package regress

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Decode reads a regressor's file and its manifest. It checks digest and length, each line, each
// index, that every node and leaf of a tree is reached exactly once, and that all numbers are
// finite. Lists are counted before they are allocated, so that memory is bounded by the length of
// the file. Errors wrap ErrBadFile and name line and field.
func Decode(model, manifest []byte) (*Regressor, error) {
	m, err := readManifest(manifest, model)
	if err != nil {
		return nil, fmt.Errorf("decode regressor: %w", err)
	}
	p := &parser{text: string(model), manifest: m}
	r, err := p.regressor()
	if err != nil {
		return nil, fmt.Errorf("decode regressor of %s: %w: line %d: %w", m.Target, ErrBadFile,
			p.line, err)
	}
	return r, nil
}

// parser reads the lines of a file.
type parser struct {
	text     string
	at, line int // offset of the next line, number of the last one
	manifest *Manifest
}

func (p *parser) regressor() (*Regressor, error) {
	r := &Regressor{Manifest: *p.manifest}
	sizes, err := p.header(r)
	if err != nil {
		return nil, err
	}
	if r.trees, err = p.trees(sizes); err != nil {
		return nil, err
	}
	return r, p.footer()
}

// trees reads the blocks of all trees, a range per goroutine. If several trees are invalid, it
// returns the error of the first.
func (p *parser) trees(sizes []int) ([]tree, error) {
	trees := make([]tree, len(sizes))
	parts, found := make([]parser, readers()), make([]error, readers())
	runs := parallel(readers(), len(sizes), 64, func(run, from, to int) {
		part := &parts[run]
		*part = *p
		for _, size := range sizes[:from] {
			part.at += size
		}
		part.line += strings.Count(p.text[p.at:part.at], "\n")
		for i := from; i < to && found[run] == nil; i++ {
			start := part.at
			if err := part.tree(&trees[i], i); err != nil {
				found[run] = fmt.Errorf("tree %d: %w", i, err)
			} else if part.at-start != sizes[i] {
				found[run] = fmt.Errorf("tree %d: tree_sizes says %d bytes, the tree has %d", i,
					sizes[i], part.at-start)
			}
		}
	})
	for run, err := range found[:runs] {
		if p.at, p.line = parts[run].at, parts[run].line; err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// next returns the next line without its newline.
func (p *parser) next() (string, error) {
	p.line++
	end := strings.IndexByte(p.text[p.at:], '\n')
	if end < 0 {
		return "", fmt.Errorf("the file is truncated")
	}
	line := p.text[p.at : p.at+end]
	p.at += end + 1
	return line, nil
}

// expect reads lines with a fixed text.
func (p *parser) expect(lines ...string) error {
	for _, want := range lines {
		line, err := p.next()
		if err != nil {
			return err
		}
		if line != want {
			return fmt.Errorf("%.60q, want %.200q", line, want)
		}
	}
	return nil
}

// field reads the line name=… and returns the value.
func (p *parser) field(name string) (string, error) {
	line, err := p.next()
	if err != nil {
		return "", err
	}
	value, found := strings.CutPrefix(line, name)
	if !found || !strings.HasPrefix(value, "=") {
		return "", fmt.Errorf("%.60q, want %s=", line, name)
	}
	return value[1:], nil
}

// peek reports whether the next line begins with a prefix.
func (p *parser) peek(prefix string) bool { return strings.HasPrefix(p.text[p.at:], prefix) }

var objectives = []string{"regression", "regression_l1", "huber", "quantile"}

// header reads up to the blank line before the first tree and returns the length of each tree's
// block. Values that the manifest contains as well must be equal.
func (p *parser) header(r *Regressor) ([]int, error) {
	names := p.manifest.columns()
	err := p.expect("tree", "version=v3", "num_class=1", "num_tree_per_iteration=1",
		"label_index=0", "max_feature_idx="+strconv.Itoa(len(names)-1))
	if err != nil {
		return nil, err
	}
	if r.average, err = p.objective(); err != nil {
		return nil, err
	}
	if err := p.expect("feature_names=" + strings.Join(names, " ")); err != nil {
		return nil, err
	}
	signs := make([]string, len(names))
	for i, sign := range p.manifest.signs() {
		signs[i] = strconv.Itoa(sign)
	}
	if constraints := "monotone_constraints=" + strings.Join(signs, " "); strings.Trim(
		constraints[21:], "0 ",
	) != "" {
		if err := p.expect(constraints); err != nil {
			return nil, err
		}
	}
	infos := make([]string, len(names))
	for i := range infos {
		infos[i] = p.manifest.info(i)
	}
	if err := p.expect("feature_infos=" + strings.Join(infos, " ")); err != nil {
		return nil, err
	}
	return p.sizes()
}

// objective reads the objective and whether trees are averaged.
func (p *parser) objective() (average bool, err error) {
	objective, err := p.field("objective")
	if err != nil {
		return false, err
	}
	if !slices.Contains(objectives, objective) {
		return false, fmt.Errorf("objective %.60q, want one of %s", objective,
			strings.Join(objectives, ", "))
	}
	if average = p.peek("average_output\n"); average {
		err = p.expect("average_output")
	}
	return average, err
}

func (p *parser) sizes() ([]int, error) {
	value, err := p.field("tree_sizes")
	if err != nil {
		return nil, err
	}
	sizes, sum := make([]int, 0, strings.Count(value, " ")+1), 0
	for entry := range strings.SplitSeq(value, " ") {
		size, err := strconv.Atoi(entry)
		if err != nil || size <= 0 || size > len(p.text) {
			return nil, fmt.Errorf("tree_sizes: %.30q is no length in a file of %d bytes", entry,
				len(p.text))
		}
		sum += size
		sizes = append(sizes, size)
	}
	if len(sizes) > maxTrees {
		return nil, fmt.Errorf("tree_sizes: %d trees, want at most %d", len(sizes), maxTrees)
	}
	if err := p.expect(""); err != nil {
		return nil, err
	}
	if sum > len(p.text)-p.at {
		return nil, fmt.Errorf("tree_sizes: %d bytes of trees, but %d bytes are left", sum,
			len(p.text)-p.at)
	}
	return sizes, nil
}

// tree reads one block, its two blank lines included.
func (p *parser) tree(t *tree, number int) error {
	if err := p.expect("Tree=" + strconv.Itoa(number)); err != nil {
		return err
	}
	value, err := p.field("num_leaves")
	if err != nil {
		return err
	}
	leaves, err := strconv.Atoi(value)
	// Each leaf needs a digit and a blank or newline in three lists at least.
	if err != nil || leaves < 1 || leaves > (len(p.text)-p.at)/6 {
		return fmt.Errorf("num_leaves: %.30q leaves do not fit %d bytes", value, len(p.text)-p.at)
	}
	if err := p.expect("num_cat=0"); err != nil {
		return err
	}
	t.nodes, t.leaves = make([]treeNode, leaves-1), make([]treeLeaf, leaves)
	if err := p.lists(t); err != nil {
		return err
	}
	if err := p.expect("is_linear=0"); err != nil {
		return err
	}
	shrinkage, err := p.field("shrinkage")
	if err != nil {
		return err
	}
	if x, err := number64(shrinkage); err != nil || x <= 0 {
		return fmt.Errorf("shrinkage is %.30q, want a number above 0", shrinkage)
	}
	if err := p.expect("", ""); err != nil {
		return err
	}
	return t.check()
}

// lists reads the fields of nodes and leaves.
func (p *parser) lists(t *tree) (err error) {
	nodes, leaves := len(t.nodes), len(t.leaves)
	numbers := func(name string, n int, set func(i int, x float64)) {
		if err == nil {
			err = p.numbers(name, n, set)
		}
	}
	integers := func(name string, n, low, high int, set func(i, x int)) {
		if err == nil {
			err = p.integers(name, n, low, high, set)
		}
	}
	integers("split_feature", nodes, 0, len(p.manifest.Features)-1, func(i, f int) {
		t.nodes[i].feature = int32(f)
	})
	numbers("split_gain", nodes, func(i int, x float64) { t.nodes[i].gain = x })
	numbers("threshold", nodes, func(i int, x float64) { t.nodes[i].threshold = x })
	if err == nil {
		err = p.decisions(nodes)
	}
	integers("left_child", nodes, -leaves, nodes-1, func(i, c int) { t.nodes[i].left = int32(c) })
	integers("right_child", nodes, -leaves, nodes-1, func(i, c int) { t.nodes[i].right = int32(c) })
	numbers("leaf_value", leaves, func(i int, x float64) { t.leaves[i].value = x })
	numbers("leaf_weight", leaves, func(i int, x float64) { t.leaves[i].weight = x })
	integers("leaf_count", leaves, 0, maxCount, func(i, c int) { t.leaves[i].count = c })
	numbers("internal_value", nodes, func(i int, x float64) { t.nodes[i].value = x })
	numbers("internal_weight", nodes, func(i int, x float64) { t.nodes[i].weight = x })
	integers("internal_count", nodes, 0, maxCount, func(i, c int) { t.nodes[i].count = c })
	return err
}

// maxCount is the maximum number of examples in LightGBM's counts.
const maxCount = 1<<31 - 1

// decisions checks the types of the comparisons: 2 is a number without missing values; with 8 and
// 10 NaN would go right or left, but rows with NaN are refused. Categories (odd) and zero as
// missing (4 to 7) are not supported.
func (p *parser) decisions(nodes int) error {
	value, err := p.list("decision_type", nodes)
	if err != nil || nodes == 0 {
		return err
	}
	for entry := range strings.SplitSeq(value, " ") {
		if entry != "2" && entry != "8" && entry != "10" {
			return fmt.Errorf("decision_type %.30q, want 2, 8 or 10", entry)
		}
	}
	return nil
}

// list reads a field and checks that it has n entries.
func (p *parser) list(name string, n int) (string, error) {
	value, err := p.field(name)
	if err != nil {
		return "", err
	}
	entries := 0
	if value != "" {
		entries = strings.Count(value, " ") + 1
	}
	if entries != n {
		return "", fmt.Errorf("%s has %d entries, want %d", name, entries, n)
	}
	return value, nil
}

func (p *parser) numbers(name string, n int, set func(i int, x float64)) error {
	value, err := p.list(name, n)
	if err != nil {
		return err
	}
	for i := range n {
		if x, length := shortNumber(value); length > 0 {
			set(i, x)
			value = value[min(length+1, len(value)):]
			continue
		}
		entry, rest, _ := strings.Cut(value, " ")
		x, err := number64(entry)
		if err != nil {
			return fmt.Errorf("%s, entry %d: %w", name, i, err)
		}
		set(i, x)
		value = rest
	}
	return nil
}

func (p *parser) integers(name string, n, low, high int, set func(i, x int)) error {
	value, err := p.list(name, n)
	if err != nil {
		return err
	}
	for i := range n {
		if x, length := shortInteger(value); length > 0 && x >= low && x <= high {
			set(i, x)
			value = value[min(length+1, len(value)):]
			continue
		}
		entry, rest, _ := strings.Cut(value, " ")
		x, err := strconv.Atoi(entry)
		if err != nil || x < low || x > high {
			return fmt.Errorf("%s, entry %d: %.30q is no integer from %d to %d", name, i, entry,
				low, high)
		}
		set(i, x)
		value = rest
	}
	return nil
}

// number64 reads a finite decimal number.
func number64(s string) (float64, error) {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, fmt.Errorf("%.30q is no finite number", s)
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%.30q is no finite number", s)
	}
	return x, nil
}

// footer checks the text after the trees. It does not affect predictions, but must be complete.
func (p *parser) footer() error {
	if err := p.expect("end of trees", "", "feature_importances:"); err != nil {
		return err
	}
	names := p.manifest.columns()
	for !p.peek("\n") {
		line, err := p.next()
		if err != nil {
			return err
		}
		name, count, _ := strings.Cut(line, "=")
		if n, err := strconv.Atoi(count); err != nil || n < 0 || !slices.Contains(names, name) {
			return fmt.Errorf("feature_importances: %.60q, want a feature and a count", line)
		}
	}
	if err := p.expect("", "parameters:"); err != nil {
		return err
	}
	for p.peek("[") {
		if line, err := p.next(); err != nil || !strings.HasSuffix(line, "]") {
			return fmt.Errorf("parameters: %.60q does not end with a bracket", line)
		}
	}
	if err := p.expect("end of parameters", "", "pandas_categorical:null"); err != nil {
		return err
	}
	if p.at != len(p.text) {
		return fmt.Errorf("%d bytes follow the end", len(p.text)-p.at)
	}
	return nil
}

// shortNumber parses a number of at most 15 digits without an exponent, up to a
// blank or the end of the text. It returns the number and its length in bytes. The
// digits are a whole number below 2^53 and the power of ten is exact, so their
// quotient is the nearest float64 (Clinger 1990). The length is 0 for any other
// text, which strconv parses. With strconv alone, loading a forest of 2000 trees
// takes 1.14 times as long (BenchmarkLoad).
func shortNumber(text string) (x float64, length int) {
	i, digits, point := 0, 0, -1
	whole := int64(0)
	if len(text) > 0 && text[0] == '-' {
		i = 1
	}
	for ; i < len(text) && text[i] != ' '; i++ {
		switch c := text[i]; {
		case c-'0' < 10:
			whole = 10*whole + int64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = digits
		default:
			return 0, 0
		}
		if digits > 15 {
			return 0, 0
		}
	}
	if digits == 0 {
		return 0, 0
	}
	x = float64(whole)
	if point >= 0 {
		x /= powersOfTen[digits-point]
	}
	if text[0] == '-' {
		x = -x
	}
	return x, i
}

var powersOfTen = [16]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
}

// shortInteger is like shortNumber for an integer of at most 15 digits.
func shortInteger(text string) (n, length int) {
	i := 0
	if len(text) > 0 && text[0] == '-' {
		i = 1
	}
	first := i
	for ; i < len(text) && text[i] != ' '; i++ {
		c := text[i] - '0'
		if c >= 10 || i-first >= 15 {
			return 0, 0
		}
		n = 10*n + int(c)
	}
	if i == first {
		return 0, 0
	}
	if first == 1 {
		n = -n
	}
	return n, i
}
