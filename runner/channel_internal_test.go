package runner

import (
	"bytes"
	"net"
	"path/filepath"
	"testing"
)

// A side channel closes connections above its limit, and one with a line that is too long.
func TestSideChannel_IsBounded(t *testing.T) {
	c, err := openSideChannel(filepath.Join(t.TempDir(), "epochs"))
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan int)
	go func() {
		n := 0
		for chunk := range c.reported() {
			n += len(chunk.data)
		}
		read <- n
	}()

	var open []net.Conn
	for range maxConnections + 1 {
		conn, err := net.Dial("unix", c.path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		open = append(open, conn)
	}
	isClosed := func(conn net.Conn) bool {
		_, err := conn.Read(make([]byte, 1))
		return err != nil
	}
	if !isClosed(open[maxConnections]) {
		t.Errorf("connection %d is open, want at most %d", maxConnections+1, maxConnections)
	}
	_, _ = open[0].Write(bytes.Repeat([]byte("x"), 1<<20)) // fails once the channel closes it
	if !isClosed(open[0]) {
		t.Error("a connection with a line of 1 MiB is open, want it closed")
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	c.stop()
	if n := <-read; n != 0 {
		t.Errorf("read %d bytes, want none", n)
	}
}
