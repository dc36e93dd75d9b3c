package runner

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"sync"
	"time"
)

// channelVariable is the environment variable with the path of the side channel: a Unix stream
// socket to which a job may write a JSON object per epoch.
const channelVariable = "COURIER_CHANNEL"

// maxConnections bounds the open connections of a side channel. Ranks of a job may have one each.
const maxConnections = 64

// maxChannelWait limits the reading of a connection after the job has ended. A child of the job can
// keep a connection open.
const maxChannelWait = 2 * time.Second

// sideChannel receives epochs beside the output of the job, so that a callback of a framework does
// not print anything.
type sideChannel struct {
	path     string // of the socket
	listener *net.UnixListener
	chunks   chan outputChunk // an empty one for each connection, then its lines; closed after stop
	readers  sync.WaitGroup

	mu          sync.Mutex
	connections map[*net.UnixConn]bool
	count       int       // of all connections
	limit       time.Time // of reading, after stop
}

// openSideChannel opens the socket, in a directory that only this user can read.
func openSideChannel(path string) (c *sideChannel, err error) {
	c = &sideChannel{
		path:        path,
		chunks:      make(chan outputChunk, 64),
		connections: map[*net.UnixConn]bool{},
	}
	c.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the side channel: %w", err)
	}
	go c.accept()
	return c, nil
}

// lastPath is the address of the connection of stop.
func (c *sideChannel) lastPath() string { return c.path + ".last" }

// accept reads every connection up to the one of stop, and then closes chunks.
func (c *sideChannel) accept() {
	defer close(c.chunks)
	defer c.readers.Wait()
	defer func() { _ = c.listener.Close() }() // nothing is lost: the queue is empty
	for {
		conn, err := c.listener.AcceptUnix()
		if err != nil {
			return // the listener was closed
		}
		if a, ok := conn.RemoteAddr().(*net.UnixAddr); ok && a.Name == c.lastPath() {
			_ = conn.Close()
			return
		}
		number := c.add(conn)
		if number == 0 {
			_ = conn.Close()
			continue
		}
		c.readers.Go(func() { c.read(conn, number) })
	}
}

// add registers a connection, and returns its number from 1; 0 if there are too many.
func (c *sideChannel) add(conn *net.UnixConn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.connections) >= maxConnections {
		return 0
	}
	_ = conn.SetReadDeadline(c.limit) // it may have been closed
	c.connections[conn] = true
	c.count++
	return c.count
}

// read reads one connection to its end. The number of the connection is the stream of its chunks.
func (c *sideChannel) read(conn *net.UnixConn, number int) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.connections, conn)
		_ = conn.Close() // it was only read
	}()
	c.chunks <- outputChunk{stream: number, at: time.Now()}
	lines := bufio.NewScanner(conn) // a line above 64 KiB ends the connection
	for lines.Scan() {
		line := append(bytes.Clone(lines.Bytes()), '\n')
		c.chunks <- outputChunk{stream: number, data: line, at: time.Now()}
	}
}

// reported returns the channel of the reports; nil without a side channel.
func (c *sideChannel) reported() <-chan outputChunk {
	if c == nil {
		return nil
	}
	return c.chunks
}

// stop ends the channel after the connections that the job has opened. The queue of connections is
// in order, so that the connection of stop comes after them.
func (c *sideChannel) stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.limit = time.Now().Add(maxChannelWait)
	for conn := range c.connections {
		_ = conn.SetReadDeadline(c.limit) // it may have been closed
	}
	c.mu.Unlock()
	last, err := net.DialUnix("unix", &net.UnixAddr{Name: c.lastPath(), Net: "unix"},
		&net.UnixAddr{Name: c.path, Net: "unix"})
	if err != nil {
		_ = c.listener.Close()
		return
	}
	_ = last.Close()
}
