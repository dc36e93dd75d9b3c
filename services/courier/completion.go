package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionScripts are evaluated by shells. They ask courier for the completions of the last word, and
// complete files where it has none.
var completionScripts = map[string]string{
	"bash": `_courier() {
  local IFS=$'\n'
  COMPREPLY=($(courier help completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _courier courier
`,
	"zsh": `_courier() {
  local -a found=("${(@f)$(courier help completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n $found ]] && compadd -- $found || _files
}
compdef _courier courier
`,
	"fish": `function __courier
  set -l found (courier help completion fish -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  set -q found[1]; and printf '%s\n' $found; or __fish_complete_path (commandline -ct)
end
complete -c courier -k -f -a '(__courier)'
`,
}

// printCompletion prints the script of a shell, or the completions of the last word of a command line.
func printCompletion(w *environment, shell string, words []string) error {
	if len(words) == 0 {
		_, err := io.WriteString(w.stdout, completionScripts[shell])
		return err
	}
	parser, err := newParser(&cli{}, io.Discard, io.Discard)
	if err != nil {
		return err
	}
	for _, word := range completions(parser.Model.Node, words) {
		fmt.Fprintln(w.stdout, word)
	}
	return nil
}

// completions returns what the last word of a command line can become: a command, a flag, or a value of the
// flag before it, also after "=", which bash passes as a word of its own. There is none in a training command.
// words is not empty.
func completions(n *kong.Node, words []string) (found []string) {
	before, last, previous := words[:len(words)-1], words[len(words)-1], ""
	if slices.Contains(before, "--") {
		return nil
	}
	if last == "=" {
		before, last = words, ""
	}
	for _, word := range before {
		if word == "=" {
			continue
		}
		previous = word
		isWord := func(child *kong.Node) bool { return child.Name == word }
		if at := slices.IndexFunc(n.Children, isWord); at >= 0 && word != "help" {
			n = n.Children[at]
		}
	}
	add := func(word string) {
		if strings.HasPrefix(word, last) && word != "" {
			found = append(found, word)
		}
	}
	for _, level := range n.AllFlags(false) {
		for _, f := range level {
			isValue := previous == "--"+f.Name || f.Short != 0 && previous == "-"+string(f.Short)
			prefix := "--" + f.Name + "="
			if isInline := strings.HasPrefix(last, prefix); isInline || isValue && !f.IsBool() {
				found = nil
				for value := range strings.SplitSeq(f.Enum, ",") {
					if isInline && value != "" {
						value = prefix + value
					}
					add(value)
				}
				return found
			}
			if strings.HasPrefix(last, "-") {
				add("--" + f.Name)
			}
		}
	}
	for _, child := range n.Children {
		add(child.Name)
	}
	return found
}
