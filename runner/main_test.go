package runner_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// jobFlag makes the test program run a training command: --job NAME ARGUMENT….
const jobFlag = "--job"

// TestMain lets the test program be the command of a job.
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

// trainingJobs are commands that imitate training programs. Some wait for lines of input.
var trainingJobs = map[string]func(arguments []string) int{
	// epochs N: prints N epochs as JSON, each after a line of input or the end of the input.
	"epochs": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		input := bufio.NewScanner(os.Stdin)
		for i := 1; i <= n; i++ {
			input.Scan()
			fmt.Printf("{\"epoch\":%d,\"seconds\":%g,\"loss\":%g,\"accuracy\":%g}\n",
				i, 0.25*float64(i), 1/float64(i), 1-1/float64(i+1))
		}
		return 0
	},
	// percentages N: prints N epochs with an accuracy of 91 %.
	"percentages": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		for i := 1; i <= n; i++ {
			fmt.Printf("{\"epoch\":%d,\"seconds\":1,\"accuracy\":91}\n", i)
		}
		return 0
	},
	// channel N [garbage]: writes N epochs to the side channel.
	"channel": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		conn, err := net.Dial("unix", os.Getenv("COURIER_CHANNEL"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for i := 1; i <= n; i++ {
			if len(arguments) > 1 {
				fmt.Fprintln(conn, "step 1\n{\"epoch\":\"x\"}\n[1,2\x00")
			}
			accuracy := 1 - math.Pow(0.5, float64(i))
			fmt.Fprintf(conn, "{\"epoch\":%d,\"seconds\":1,\"accuracy\":%g}\n", i, accuracy)
		}
		return 0
	},
	// obedient N: prints epochs until the control file asks it to stop.
	"obedient": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		for i := 1; i <= n; i++ {
			fmt.Printf("{\"epoch\":%d,\"seconds\":1}\n", i)
			for { // until the runner has read the epoch
				var c struct {
					Probability *float64 `json:"next_epoch_probability"`
					Stop        bool     `json:"stop"`
				}
				text, err := os.ReadFile(os.Getenv("COURIER_CONTROL"))
				if err != nil || json.Unmarshal(text, &c) != nil {
					return 1
				}
				if c.Stop {
					fmt.Println("checkpoint written")
					return 0
				}
				if c.Probability != nil {
					break
				}
				runtime.Gosched()
			}
		}
		return 0
	},
	// control N: prints epochs with the batch size of the control file.
	"control": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		input := bufio.NewScanner(os.Stdin)
		for i := 1; i <= n; i++ {
			text, err := os.ReadFile(os.Getenv("COURIER_CONTROL"))
			if err != nil {
				fmt.Println(err)
				return 1
			}
			var c struct {
				BatchSize int `json:"batch_size"`
				FromEpoch int `json:"from_epoch"`
			}
			if err := json.Unmarshal(text, &c); err != nil || c.FromEpoch < 1 || c.FromEpoch > i {
				fmt.Println("control file", string(text), err)
				return 1
			}
			fmt.Println("begin", i)
			input.Scan()
			fmt.Printf("{\"epoch\":%d,\"seconds\":%g,\"batch_size\":%d}\n", i, 8/float64(c.BatchSize), c.BatchSize)
		}
		return 0
	},
	// loaders N: prints epochs with the data loaders of the control file, of which two are used.
	"loaders": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		input := bufio.NewScanner(os.Stdin)
		for i := 1; i <= n; i++ {
			var c struct {
				Loaders int `json:"loaders"`
			}
			text, err := os.ReadFile(os.Getenv("COURIER_CONTROL"))
			if err != nil || json.Unmarshal(text, &c) != nil || c.Loaders < 1 {
				fmt.Println("control file", string(text), err)
				return 1
			}
			fmt.Println("begin", i)
			input.Scan()
			fmt.Printf("{\"epoch\":%d,\"seconds\":%g,\"loaders\":%d}\n", i, 0.5/float64(min(2, c.Loaders)), c.Loaders)
		}
		return 0
	},
	// workers CPUS N: prints epochs with the CPUs of the control file, which must be CPUS at first. An
	// epoch takes half a second divided by the CPUs.
	"workers": func(arguments []string) int {
		cpus, _ := strconv.Atoi(arguments[0])
		n, _ := strconv.Atoi(arguments[1])
		input := bufio.NewScanner(os.Stdin)
		for i := 1; i <= n; i++ {
			var c struct {
				CPUs int `json:"cpus"`
			}
			text, err := os.ReadFile(os.Getenv("COURIER_CONTROL"))
			if err != nil || json.Unmarshal(text, &c) != nil || i == 1 && c.CPUs != cpus {
				fmt.Println("control file", string(text), err)
				return 1
			}
			cpus = c.CPUs
			fmt.Println("begin", i)
			input.Scan()
			fmt.Printf("{\"epoch\":%d,\"seconds\":%g,\"cpus\":%d}\n", i, 0.5/float64(cpus), cpus)
		}
		return 0
	},
	// resume BATCH DONE N: prints the epochs after DONE up to N, each after a byte of input.
	"resume": func(arguments []string) int {
		batch, _ := strconv.ParseFloat(arguments[0], 64)
		done, _ := strconv.Atoi(arguments[1])
		n, _ := strconv.Atoi(arguments[2])
		fmt.Println("start after", done, os.Getenv("COURIER_EPOCHS_DONE"))
		for i := done + 1; i <= n; i++ {
			fmt.Println("begin", i)
			var one [1]byte // only one byte, because the rest is for the restarted command
			_, _ = os.Stdin.Read(one[:])
			fmt.Printf("{\"epoch\":%d,\"seconds\":%g}\n", i, 8/batch)
		}
		return 0
	},
	// lingering: prints an epoch, another one after a byte of input, and ends after SIGTERM and the
	// end of its input.
	"lingering": func([]string) int {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("{\"epoch\":1,\"seconds\":1}")
		var one [1]byte
		_, _ = os.Stdin.Read(one[:])
		fmt.Println("{\"epoch\":2,\"seconds\":1}")
		<-c
		fmt.Println("asked to end")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	},
	// environment: prints its arguments and the variables that Courier sets.
	"environment": func(arguments []string) int {
		fmt.Println("arguments", arguments)
		for _, name := range []string{
			"COURIER_JOB_ID", "COURIER_BATCH_SIZE", "COURIER_CPUS", "COURIER_EPOCHS",
			"COURIER_SLO_SECONDS", "PYTHONUNBUFFERED",
		} {
			fmt.Println(name, os.Getenv(name))
		}
		return 0
	},
	// exit N: exits with that status.
	"exit": func(arguments []string) int {
		code, _ := strconv.Atoi(arguments[0])
		return code
	},
	// signals: prints "ready" and the first signal, and exits with status 7.
	"signals": func([]string) int {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		fmt.Println("got", <-c)
		return 7
	},
	// stubborn: prints "ready" and ignores signals to terminate.
	"stubborn": func([]string) int {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		select {}
	},
	// chatter N: prints N lines in no known format.
	"chatter": func(arguments []string) int {
		n, _ := strconv.Atoi(arguments[0])
		for i := range n {
			fmt.Println("step", i)
		}
		return 0
	},
	// flood: prints megabytes without a line break and then an epoch, and bytes that are not text to
	// standard error.
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
	// work: uses CPU time, prints an epoch, and waits for the end of its input.
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
