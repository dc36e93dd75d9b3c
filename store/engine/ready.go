package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// lookEvery is how often a starting child is looked at.
const lookEvery = 10 * time.Millisecond

// newNonce names one start, so that no other program's answer is taken for it.
func newNonce() string { return "courier-" + strings.ToLower(rand.Text()) }

// awaitReady waits until the child answers with this start's nonce. What the
// child prints as an exception, its end, and StartTimeout are errors.
func (v *supervisor) awaitReady(ctx context.Context, c *child) (Endpoint, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, v.options.StartTimeout,
		fmt.Errorf("the engine did not answer within %v", v.options.StartTimeout))
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	p := newProbe(v.settings)
	defer p.client.CloseIdleConnections()
	last := errors.New("it wrote no ports")
	for {
		select {
		case <-c.exited:
			return Endpoint{}, fmt.Errorf("start the engine: %w", explain(c.log.text(), c.describeExit()))
		case <-ctx.Done():
			return Endpoint{}, fmt.Errorf("start the engine: %w (%w)", context.Cause(ctx), last)
		case <-look.C:
		}
		if found := exception(c.log.text()); found != "" {
			return Endpoint{}, fmt.Errorf("start the engine: %w", explain(found, errors.New(found)))
		}
		httpPort, tcpPort, ok := v.listening()
		if !ok {
			continue
		}
		endpoint, err := p.ask(ctx, httpPort, tcpPort)
		if err == nil {
			endpoint.PID = c.pid
			return endpoint, v.keepPorts(httpPort, tcpPort)
		}
		if ctx.Err() == nil {
			last = err
		}
	}
}

// listening says on which ports. The library writes them when it listens; a
// server has them from its configuration and is simply asked.
func (v *supervisor) listening() (httpPort, tcpPort int, ok bool) {
	if v.settings.server {
		return v.settings.httpPort, v.settings.tcpPort, true
	}
	return readPorts(v.settings.portsPath())
}

// keepPorts writes for a server what the library writes itself.
func (v *supervisor) keepPorts(httpPort, tcpPort int) error {
	if !v.settings.server {
		return nil
	}
	return writeFile(v.settings.portsPath(), fmt.Appendf(nil, "%d\t%d\n", httpPort, tcpPort))
}

// explain recognises in what the engine printed a port that was taken between
// the check and the start.
func explain(printed string, err error) error {
	if strings.Contains(printed, "Address already in use") {
		return fmt.Errorf("%w: %w", ErrPortTaken, err)
	}
	return err
}

// probe asks a starting engine who it is.
type probe struct {
	settings settings
	client   *http.Client
}

// newProbe makes a client that keeps no connection: an open one delays a stop.
func newProbe(s settings) *probe {
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil}
	return &probe{settings: s, client: &http.Client{Transport: transport, Timeout: 5 * time.Second}}
}

// ask returns the endpoint if the engine of this start answers on the ports, and
// makes the product's database.
func (p *probe) ask(ctx context.Context, httpPort, tcpPort int) (Endpoint, error) {
	s := p.settings
	base := "http://" + net.JoinHostPort(loopback, strconv.Itoa(httpPort))
	answer, err := p.query(ctx, base, "SELECT displayName(), version()")
	if err != nil {
		return Endpoint{}, err
	}
	name, version, _ := strings.Cut(answer, "\t")
	if name != s.nonce {
		return Endpoint{}, fmt.Errorf("another program answers on port %d", httpPort)
	}
	if _, err := p.query(ctx, base, "CREATE DATABASE IF NOT EXISTS `"+s.database+"`"); err != nil {
		return Endpoint{}, err
	}
	return Endpoint{
		HTTPURL: base, NativeURL: "clickhouse://" + net.JoinHostPort(loopback, strconv.Itoa(tcpPort)),
		User: userCourier, Password: s.courierPassword, ReaderUser: userReader, ReaderPassword: s.readerPassword,
		Database: s.database, Version: version, httpPort: httpPort, tcpPort: tcpPort,
	}, nil
}

// query runs one statement and returns the answer without its last newline.
func (p *probe) query(ctx context.Context, base, statement string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/?"+url.Values{"query": {statement}}.Encode(), http.NoBody)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(userCourier, p.settings.courierPassword)
	response, err := p.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return "", err
	}
	answer := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("HTTP status %d: %.200s", response.StatusCode, answer)
	}
	return answer, nil
}
