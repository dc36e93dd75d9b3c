// Command summary reads the output of "go test -json" and prints what "go test" prints without -v:
// a line for each package, and the output of failed tests. Then it lists the skipped tests with
// their reasons. The exit status is 1 if a test was skipped for the reason in -never.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// testEvent is an event of test2json.
type testEvent struct {
	Action, Package, ImportPath, Test, Output string
}

var reason = regexp.MustCompile(`^\s*\S+\.go:\d+: (.*)`)

func main() {
	never := flag.String("never", "", "a skipped test whose reason contains this fails the run")
	flag.Parse()
	output := map[string][]string{} // by running test
	count := map[string]int{}
	var skipped, forbidden []string
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e testEvent
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text()) // a message of the go command
			continue
		}
		id := e.Package + " " + e.Test
		switch {
		case e.Action == "build-output", e.Action == "output" && e.Test == "" && e.Output != "PASS\n":
			fmt.Print(e.Output)
		case e.Action == "output":
			output[id] = append(output[id], e.Output)
		case e.Test == "":
			count["package "+e.Action]++
			for id, lines := range output { // tests that did not end
				if e.Action == "fail" && strings.HasPrefix(id, e.Package+" ") {
					fmt.Print(strings.Join(lines, ""))
				}
			}
		case e.Action == "fail":
			fmt.Print(strings.Join(output[id], ""))
			fallthrough
		case e.Action == "pass", e.Action == "skip":
			count[e.Action]++
			if e.Action == "skip" {
				why := skipReason(output[id])
				skipped = append(skipped, fmt.Sprintf("  %s: %s", id, why))
				if *never != "" && strings.Contains(why, *never) {
					forbidden = append(forbidden, id)
				}
			}
			delete(output, id)
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "read the events:", err)
		os.Exit(1)
	}
	fmt.Printf("%d packages passed, %d failed; %d tests passed, %d failed, %d skipped\n",
		count["package pass"], count["package fail"], count["pass"], count["fail"], len(skipped))
	for _, s := range skipped {
		fmt.Println(s)
	}
	if len(forbidden) > 0 {
		fmt.Printf("%d of them may not be skipped here\n", len(forbidden))
		os.Exit(1)
	}
}

// skipReason returns the reason with which a test was skipped.
func skipReason(output []string) string {
	for _, line := range output {
		if m := reason.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			return m[1]
		}
	}
	return "no reason given"
}
