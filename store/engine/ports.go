package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// The default ports of ClickHouse.
const (
	DefaultHTTPPort = 8123
	DefaultTCPPort  = 9000
)

// checkPort returns an error if no program can listen on a port of the loopback address. Port 0 is
// always free.
func checkPort(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on port %d of %s: %w", port, loopback, ErrPortTaken)
	}
	if err != nil {
		return fmt.Errorf("listen on port %d of %s: %w", port, loopback, err)
	}
	return listener.Close()
}

// readPorts reads the file that the engine writes when it listens: one line with HTTP port, tab and
// native port. ok is false if the line is incomplete.
func readPorts(path string) (httpPort, tcpPort int, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false
	}
	return parsePorts(string(content))
}

// parsePorts parses the content of the file for readPorts.
func parsePorts(content string) (httpPort, tcpPort int, ok bool) {
	line, complete := strings.CutSuffix(content, "\n")
	first, second, hasTab := strings.Cut(line, "\t")
	if !complete || !hasTab {
		return 0, 0, false
	}
	httpPort, errHTTP := strconv.Atoi(first)
	tcpPort, errTCP := strconv.Atoi(second)
	if errHTTP != nil || errTCP != nil || !isPort(httpPort) || !isPort(tcpPort) {
		return 0, 0, false
	}
	return httpPort, tcpPort, true
}

func isPort(n int) bool { return n > 0 && n < 1<<16 }
