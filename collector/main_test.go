package collector_test

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
)

// jobFlag makes the test program a training command: --job NAME ARGUMENT….
const jobFlag = "--job"

// TestMain lets the tests run this very program as the command of a job.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == jobFlag {
		os.Exit(trainingJobs[os.Args[2]](os.Args[3:]))
	}
	os.Exit(m.Run())
}

// trainingCommand returns the command of a training job.
func trainingCommand(name string, arguments ...string) []string {
	return append([]string{os.Args[0], jobFlag, name}, arguments...)
}

// trainingJobs are commands that print what a training program would. Those
// that wait do so for a line on their standard input.
var trainingJobs = map[string]func(arguments []string) int{
	// epochs N: prints N epochs as JSON, each after a line of input if there is any.
	"epochs": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		input := bufio.NewScanner(os.Stdin)
		for i := 1; i <= n; i++ {
			input.Scan()
			fmt.Printf("{\"epoch\":%d,\"seconds\":%g,\"loss\":%g,\"accuracy\":%g}\n", i, 0.25*float64(i), 1/float64(i), 1-1/float64(i+1))
		}
		return 0
	},
	// environment: prints its arguments and what Courier tells it.
	"environment": func(arguments []string) int {
		fmt.Println("arguments", arguments)
		for _, name := range []string{"COURIER_JOB_ID", "COURIER_BATCH_SIZE", "COURIER_CPUS", "COURIER_EPOCHS", "COURIER_SLO_SECONDS", "PYTHONUNBUFFERED"} {
			fmt.Println(name, os.Getenv(name))
		}
		return 0
	},
	// exit N: ends with that status.
	"exit": func(arguments []string) int {
		code, _ := strconv.Atoi(arguments[0])
		return code
	},
	// signals: says "ready", then the first signal it gets, and ends with status 7.
	"signals": func([]string) int {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		fmt.Println("got", <-c)
		return 7
	},
	// stubborn: says "ready" and ignores requests to end.
	"stubborn": func([]string) int {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		select {}
	},
	// chatter N: prints N lines that no format knows.
	"chatter": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		for i := range n {
			fmt.Println("step", i)
		}
		return 0
	},
	// flood: prints megabytes without a line's end, then an epoch, and on
	// standard error bytes that are no text.
	"flood": func([]string) int {
		block := make([]byte, 1<<16)
		for i := range block {
			block[i] = 'x'
		}
		for range 48 {
			_, _ = os.Stdout.Write(block)
		}
		_, _ = os.Stderr.Write([]byte{0, 0xff, 0x1b, '[', '\n'})
		fmt.Println("\n{\"epoch\":1,\"seconds\":1}")
		return 0
	},
	// work: takes CPU time and memory until its input ends, then an epoch.
	"work": func([]string) int {
		sum := 0.0
		for i := range 200_000_000 {
			sum += float64(i & 7)
		}
		fmt.Printf("{\"epoch\":1,\"loss\":%g}\n", sum)
		bufio.NewScanner(os.Stdin).Scan()
		return 0
	},
}
