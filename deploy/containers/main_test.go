package containers_test

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"courier/store/engine/host"
)

// The test binary is also the program of the image that replaces ClickHouse.
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

// Minimal configuration files replace the files of the ClickHouse image. docker-compose.yml mounts
// further files.
const (
	settings       = "/etc/clickhouse-server"
	imagesSettings = `<clickhouse><path>/var/lib/clickhouse</path><users_config>` + settings +
		`/users.xml</users_config><listen_host>127.0.0.1</listen_host><logger><console>0</console></logger></clickhouse>`
	imagesUsers = `<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password><profile>default</profile><quota>default</quota></default></users></clickhouse>`
)

// clickhouse runs the engine in a container with the configuration of a server until SIGTERM. The
// engine listens only on the loopback address and without TLS, so relays serve the public ports.
func clickhouse() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for name, text := range map[string]string{
		"config.xml": imagesSettings,
		"users.xml":  imagesUsers,
	} {
		if err := os.WriteFile(filepath.Join(settings, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	listeners, err := publicListeners()
	if err != nil {
		return err
	}
	alive, end, err := os.Pipe()
	if err != nil {
		return err
	}
	c := exec.Command("/proc/self/exe", roleHost, "-library", "/engine/libchdb.so", "-store",
		"/var/lib/clickhouse", "--", "--config-file="+settings+"/config.xml", "--path=/var/lib/clickhouse",
		"--listen_host=127.0.0.1", "--http_port=18123", "--tcp_port=19000", "--interactive",
		"--disable_suggestion", "--progress=off", "--history_file=/dev/null",
		"--query=SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP")
	c.ExtraFiles, c.Stderr = []*os.File{alive}, os.Stderr
	c.Env = append(os.Environ(), "HOME=/tmp", "TERM=dumb")
	if err := c.Start(); err != nil {
		return err
	}
	for to, l := range listeners {
		go relay(l, to)
	}
	_ = alive.Close() // the child has a copy
	context.AfterFunc(ctx, func() { _ = end.Close() })
	if err := c.Wait(); ctx.Err() == nil {
		return fmt.Errorf("the engine ended: %v", err)
	}
	return nil
}

// publicListeners returns the listeners of the server by the address of the engine to which each
// is relayed. If deploy/clickhouse/tls.xml is mounted, they use its ports and certificate.
func publicListeners() (map[string]net.Listener, error) {
	var s struct {
		TCPSecure   string `xml:"tcp_port_secure"`
		HTTPS       string `xml:"https_port"`
		Certificate string `xml:"openSSL>server>certificateFile"`
		Key         string `xml:"openSSL>server>privateKeyFile"`
	}
	open := func(port string) (net.Listener, error) { return net.Listen("tcp", ":"+port) }
	text, err := os.ReadFile(filepath.Join(settings, "config.d/tls.xml"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.TCPSecure, s.HTTPS = "9000", "8123"
	case err != nil:
		return nil, err
	default:
		if err := xml.Unmarshal(text, &s); err != nil {
			return nil, err
		}
		pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		if err != nil {
			return nil, err
		}
		plain := open
		open = func(port string) (net.Listener, error) {
			l, err := plain(port)
			if err != nil {
				return nil, err
			}
			return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}}), nil
		}
	}
	all := map[string]net.Listener{}
	for to, port := range map[string]string{
		"127.0.0.1:18123": s.HTTPS,
		"127.0.0.1:19000": s.TCPSecure,
	} {
		if all[to], err = open(port); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// relay connects every connection of a listener with an address.
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
				return // the engine is down: closing the connection informs the client
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
