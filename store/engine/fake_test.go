//go:build linux && amd64 && !noengine

package engine_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Modes of the fake host, its first argument. It takes the arguments of the real host and answers
// the readiness probe over HTTP.
const (
	fakeWell        = "well"         // works like the real host
	fakeSlow        = "slow"         // listens only after half a second
	fakeUnable      = "unable"       // prints a reason and ends
	fakeSilent      = "silent"       // runs, and never writes ports
	fakeOther       = "other"        // answers with a wrong nonce
	fakeDeaf        = "deaf"         // ignores a stop request
	fakeSelfKilled  = "self-killed"  // is killed by a signal before it listens
	fakeException   = "exception"    // prints an exception of the engine and keeps running
	fakeUnconfined  = "unconfined"   // reports that the kernel has no Landlock
	fakeOnce        = "once"         // works only the first time
	fakeHalfWritten = "half-written" // writes its ports in two pieces
)

// fakeHost acts as the host and returns its exit status.
func fakeHost(mode string, args []string) int {
	config := readConfig(argument(args, "--config-file="))
	httpPort, tcpPort := argument(args, "--http_port="), argument(args, "--tcp_port=")
	run := filepath.Dir(argument(args, "--config-file="))
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(3, "lifetime")) // waits for its end
		close(over)
	}()
	switch mode {
	case fakeUnable:
		fmt.Println("host: load engine library: it is Tuesday")
		return 2
	case fakeOnce:
		file, err := os.OpenFile(filepath.Join(run, "fake-was-here"), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return 2
		}
		_ = file.Close() // nothing was written
	case fakeSelfKilled:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // does not return
	case fakeSlow:
		<-time.NewTimer(500 * time.Millisecond).C
	case fakeSilent:
		<-over
		return 0
	case fakeOther:
		config.Nonce = "somebody else"
	case fakeException:
		fmt.Println(
			"Code: 210. DB::Exception: Listen [127.0.0.1]:" + httpPort +
				" failed: Address already in use: 127.0.0.1:" + httpPort,
		)
		<-over
		return 0
	case fakeUnconfined:
		fmt.Println("host: not confined: the kernel has no Landlock")
	}
	ports, err := serveFake(config.Nonce, httpPort, tcpPort)
	if err != nil {
		fmt.Println("host:", err)
		return 2
	}
	if err := writePorts(filepath.Join(run, "ports.tsv"), ports, mode == fakeHalfWritten); err != nil {
		fmt.Println("host:", err)
		return 2
	}
	<-over
	if mode == fakeDeaf {
		select {}
	}
	return 0
}

// fakeConfig contains the field of config.xml that a fake host reads.
type fakeConfig struct {
	Nonce string `xml:"display_name"`
}

func readConfig(path string) fakeConfig {
	var c fakeConfig
	content, err := os.ReadFile(path)
	if err == nil {
		err = xml.Unmarshal(content, &c)
	}
	if err != nil {
		fmt.Println("host: read configuration:", err)
		os.Exit(2)
	}
	return c
}

// serveFake listens on both ports and answers every query with the nonce.
func serveFake(nonce, httpPort, tcpPort string) (ports string, err error) {
	var chosen []string
	for i, port := range []string{httpPort, tcpPort} {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			return "", err
		}
		chosen = append(chosen, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
		if i == 0 {
			go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.FormValue("query"), "SELECT displayName()") {
					fmt.Fprintf(w, "%s\tfake\n", nonce)
				}
			}))
		}
	}
	return strings.Join(chosen, "\t") + "\n", nil
}

// writePorts writes the file of ports, with halves in two steps. The first step alone is a valid
// file with different ports.
func writePorts(path, ports string, halves bool) error {
	if halves {
		if err := os.WriteFile(path, []byte(ports[:len(ports)-2]), 0o600); err != nil {
			return err
		}
		<-time.NewTimer(100 * time.Millisecond).C
	}
	return os.WriteFile(path, []byte(ports), 0o600)
}

func argument(args []string, name string) string {
	for _, a := range args {
		if value, found := strings.CutPrefix(a, name); found {
			return value
		}
	}
	return ""
}
