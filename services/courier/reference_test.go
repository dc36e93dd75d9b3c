package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

var updateReference = flag.Bool("update", false, "write docs/reference/cli*.md")

// referencePage is a page of the command-line reference.
type referencePage struct {
	file, title string
	commands    []string // first words of the commands, in the order of the page
}

var referencePages = []referencePage{
	{"cli-jobs.md", "Commands that start jobs", []string{
		"demo", "tune", "run", "submit", "predict", "cancel", "workload",
	}},
	{"cli-results.md", "Commands for the state of jobs", []string{
		"status", "top", "receipt", "jobs", "score", "sql",
	}},
	{"cli-regressors.md", "Commands for regressors", []string{"regressor"}},
	{"cli-history.md", "Commands for studies and past runs", []string{
		"explore", "import", "anova", "replay",
	}},
	{"cli-simulate.md", "Commands for simulations", []string{"simulate"}},
	{"cli-services.md", "Services", []string{
		"all", "collector", "store serve", "trainer", "advisor", "gateway",
	}},
	{"cli-tables.md", "Commands for the tables", []string{"store"}},
	{"cli-operations.md", "Commands for operators", []string{
		"doctor", "dead", "engine", "certs", "health", "help", "version",
	}},
}

// TestReference_DescribesEveryCommand compares docs/reference/cli*.md with the commands and flags
// of the program.
func TestReference_DescribesEveryCommand(t *testing.T) {
	var c cli
	parser, err := newParser(&c, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range commandReference(t, parser.Model) {
		path := filepath.Join("../../docs/reference", file)
		if *updateReference {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(page), want); diff != "" {
			t.Errorf("%s (-page +program; go test ./services/courier -run Reference -update"+
				" writes it):\n%s", path, diff)
		}
	}
}

// TestReference_ExamplesAreValid parses the command lines of the examples in the help texts.
func TestReference_ExamplesAreValid(t *testing.T) {
	var c cli
	parser, err := newParser(&c, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, file := range []string{"report.sql", "deploy/nats/users.conf"} { // of examples
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, leaf := range parser.Model.Leaves(true) {
		lines := exampleLines(leaf.Detail)
		if len(lines) == 0 {
			t.Errorf("courier %s --help has no example", leaf.Path())
		}
		for _, line := range lines {
			var c cli
			parser, err := newParser(&c, os.Stdout, os.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(shellWords(line)[1:]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// mostFlags is the highest number of flags that the help of a command lists.
const mostFlags = 26

// mostCommands is the highest number of commands, with groups and hidden ones.
const mostCommands = 45

func TestReference_HelpStaysShort(t *testing.T) {
	var c cli
	parser, err := newParser(&c, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	err = kong.Visit(parser.Model, func(v kong.Visitable, next kong.Next) error {
		n, ok := v.(*kong.Node)
		if !ok {
			return next(nil)
		}
		commands++
		if flags := slices.Concat(n.AllFlags(true)...); len(flags) > mostFlags {
			t.Errorf("%s --help has %d flags, want at most %d", n.FullPath(), len(flags), mostFlags)
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if commands > mostCommands {
		t.Errorf("%d commands, want at most %d", commands, mostCommands)
	}
}

// exampleLines returns the command lines after the heading Example or Examples.
func exampleLines(detail string) (lines []string) {
	_, examples, _ := strings.Cut(detail, "Example")
	examples = strings.ReplaceAll(examples, "\\\n", "")
	for _, line := range strings.Split(examples, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "courier ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// shellWords splits a command line at spaces outside single quotes.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 0 {
			words = append(words, strings.Fields(part)...)
		} else {
			words = append(words, part)
		}
	}
	return words
}

// commandReference returns the content of each page of the reference.
func commandReference(t *testing.T, app *kong.Application) map[string]string {
	t.Helper()
	const index = "cli.md"
	pages := map[string]string{}
	leaves := app.Leaves(true)

	var b strings.Builder
	b.WriteString("# Command-line reference\n\n" +
		"Every flag can also be set by the environment variable that is named with it. A flag\n" +
		"overrides its variable. These pages are generated by\n" +
		"`go test ./services/courier -run Reference -update`.\n")
	for _, p := range referencePages {
		fmt.Fprintf(&b, "\n## %s\n\n| command | purpose |\n| --- | --- |\n", p.title)
		var page strings.Builder
		fmt.Fprintf(&page, "# %s\n\nPart of the [command-line reference](cli.md), which also has the"+
			" [flags that several\ncommands have](cli.md#flags-that-several-commands-have).\n", p.title)
		for _, leaf := range leaves {
			if pageOf(t, leaf) == p.file {
				fmt.Fprintf(&b, "| [%s](%s#%s) | %s |\n", leaf.FullPath(), p.file,
					strings.ReplaceAll(leaf.FullPath(), " ", "-"), cell(leaf.Help))
				describeCommand(&page, leaf)
			}
		}
		pages[p.file] = page.String()
	}
	describeShared(t, &b)
	pages[index] = b.String()
	return pages
}

// pageOf returns the file of the page with the longest prefix of the command.
func pageOf(t *testing.T, leaf *kong.Node) (file string) {
	t.Helper()
	longest := ""
	for _, p := range referencePages {
		for _, c := range p.commands {
			if strings.HasPrefix(leaf.FullPath()+" ", "courier "+c+" ") && len(c) > len(longest) {
				longest, file = c, p.file
			}
		}
	}
	if file == "" {
		t.Errorf("%s is on no page: see referencePages", leaf.FullPath())
	}
	return file
}

// describeShared writes a table for each group of the flags that several commands have.
func describeShared(t *testing.T, b *strings.Builder) {
	t.Helper()
	w, _ := testEnvironment(t.Context())
	parser, err := newSharedParser(w)
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n## Flags that several commands have\n\n" +
		"`courier help flags` prints them. Every command has the flags for logging.\n")
	for _, g := range sharedGroups {
		fmt.Fprintf(b, "\n### %s\n", sharedTitle(g.Key))
		describeFlags(b, nil, slices.DeleteFunc(slices.Clone(parser.Model.Flags),
			func(f *kong.Flag) bool { return f.Group.Key != g.Key }))
	}
}

// sharedTitle returns the heading of a group of shared flags.
func sharedTitle(key string) string {
	at := slices.IndexFunc(sharedGroups, func(g kong.Group) bool { return g.Key == key })
	title, _, _ := strings.Cut(strings.TrimSuffix(sharedGroups[at].Title, ":"), ",")
	return title
}

func describeCommand(b *strings.Builder, n *kong.Node) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", n.FullPath(), n.Help)
	if n.Detail != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimSpace(n.Detail))
	}
	fmt.Fprintf(b, "\n```\n%s\n```\n", n.Summary())

	var own []*kong.Flag
	var shared []string // links to groups
	for _, f := range n.Flags {
		if !isShared(f) {
			own = append(own, f)
			continue
		}
		title := sharedTitle(f.Group.Key)
		link := fmt.Sprintf("[%s](cli.md#%s)", strings.ToLower(title[:1])+title[1:],
			strings.ReplaceAll(strings.ToLower(title), " ", "-"))
		if !slices.Contains(shared, link) {
			shared = append(shared, link)
		}
	}
	describeFlags(b, n.Positional, own)
	if len(shared) > 0 {
		fmt.Fprintf(b, "\nAlso the shared flags: %s.\n", strings.Join(shared, ", "))
	}
}

// describeFlags writes a table of arguments and flags.
func describeFlags(b *strings.Builder, arguments []*kong.Positional, flags []*kong.Flag) {
	rows := 0
	row := func(name, meaning string) {
		if rows++; rows == 1 {
			b.WriteString("\n| argument or flag | meaning |\n| --- | --- |\n")
		}
		fmt.Fprintf(b, "| %s | %s |\n", name, cell(meaning))
	}
	for _, p := range arguments {
		row("`"+p.Summary()+"`", p.Help)
	}
	for _, f := range flags {
		if !f.Hidden {
			row("`"+cell(f.Summary())+"`", flagMeaning(f))
		}
	}
}

// flagMeaning returns the help of a flag with its default and its environment variables.
func flagMeaning(f *kong.Flag) string {
	meaning := f.Help
	if f.HasDefault && f.Default != "" {
		meaning += " Default: `" + f.Default + "`."
	}
	if len(f.Envs) > 0 {
		meaning += " Environment: `" + strings.Join(f.Envs, "`, `") + "`."
	}
	return meaning
}

// cell returns text that fits into a cell of a Markdown table.
func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\n", " "), "|", `\|`)
}
