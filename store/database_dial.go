package store

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// boundedConn is a connection each of whose writes has a timeout, instead of the deadline of the
// statement. clickhouse-go 2.50 sends the query and the external tables of a SELECT without a
// deadline: if a server accepted the connection but does not read, the statement would not end.
type boundedConn struct {
	*net.TCPConn // which clickhouse-go checks before it uses an idle connection
	timeout      time.Duration
}

// Write is net.Conn.Write with a timeout.
func (c *boundedConn) Write(data []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(data)
}

// dialBounded returns a function that opens a boundedConn, with TLS if the options have it.
func dialBounded(
	o *clickhouse.Options, timeout time.Duration,
) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
		defer cancel()
		var dialer net.Dialer
		plain, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		conn := &boundedConn{plain.(*net.TCPConn), timeout}
		if o.TLS == nil {
			return conn, nil
		}

		config := o.TLS.Clone()
		if config.ServerName == "" {
			if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return secure, nil
	}
}
