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
	n, _ := fmt.Sscanf(string(content), "%d\t%d\n", &httpPort, &tcpPort)
	return httpPort, tcpPort, n == 2 && strings.HasSuffix(string(content), "\n") &&
		isPort(httpPort) && isPort(tcpPort)
}

func isPort(n int) bool { return n > 0 && n < 1<<16 }
