package containers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"courier/store/engine"
	"courier/store/engine/host"
)

// The test binary is also the program of the image that stands in for ClickHouse.
const (
	roleServer = "clickhouse"
	roleHost   = "engine-host"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleHost:
			os.Exit(host.HostMain(os.Args[2:]))
		case roleServer:
			if err := clickhouse(); err != nil {
				fmt.Fprintln(os.Stderr, "clickhouse:", err)
				os.Exit(1)
			}
			return
		}
	}
	status := m.Run()
	_ = os.RemoveAll(built.dir) // a temporary directory
	os.Exit(status)
}

// clickhouse runs the engine in a container until it is asked to stop. The engine
// listens on the loopback address alone: a relay opens the ports of a server.
func clickhouse() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	const data = "/var/lib/clickhouse"
	passwords, err := json.Marshal(map[string]string{"courier": os.Getenv("COURIER_CLICKHOUSE_PASSWORD"), "reader": os.Getenv("COURIER_CLICKHOUSE_READER_PASSWORD")})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "credentials.json"), passwords, 0o600); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	e, err := engine.New(engine.Options{DataDir: data, HTTPPort: 18123, TCPPort: 19000, Library: "/engine/libchdb.so", MemoryBytes: 2 << 30}, log, nil)
	if err != nil {
		return err
	}
	for _, ports := range [][2]string{{":8123", "127.0.0.1:18123"}, {":9000", "127.0.0.1:19000"}} {
		l, err := net.Listen("tcp", ports[0])
		if err != nil {
			return err
		}
		go relay(l, ports[1])
	}
	return e.Run(ctx)
}

// relay carries the bytes of every connection to an address and back.
func relay(l net.Listener, to string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			server, err := net.Dial("tcp", to)
			if err != nil {
				return // the engine is not there: the client is told by the end
			}
			defer server.Close()
			ended := make(chan struct{}, 2)
			for _, way := range [][2]net.Conn{{from, server}, {server, from}} {
				go func() {
					_, _ = io.Copy(way[1], way[0]) // a broken connection ends it
					ended <- struct{}{}
				}()
			}
			<-ended
		}()
	}
}
