package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const probeInterval = 10 * time.Millisecond

// awaitReady waits until the child answers with the nonce of this start. It fails if the child
// prints an exception or ends, or after StartTimeout.
func (v *supervisor) awaitReady(ctx context.Context, c *hostProcess) (Connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, v.options.StartTimeout,
		fmt.Errorf("the engine did not answer within %v", v.options.StartTimeout))
	defer cancel()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	transport := &http.Transport{DisableKeepAlives: true} // an open connection would delay a stop
	p := &readinessProbe{v.settings, &http.Client{Transport: transport, Timeout: 5 * time.Second}}
	fail := func(err error) (Connection, error) {
		return Connection{}, fmt.Errorf("start the engine: %w", err)
	}

	lastErr := errors.New("it has not reported its ports")
	for {
		select {
		case <-c.exited:
			return fail(addPortTaken(c.log.text(), c.describeExit()))
		case <-ctx.Done():
			return fail(fmt.Errorf("%w (%w)", context.Cause(ctx), lastErr))
		case <-tick.C:
		}
		if found := exception(c.log.text()); found != "" {
			return fail(addPortTaken(found, errors.New(found)))
		}
		httpPort, tcpPort, ok := readPorts(v.settings.portsPath())
		if !ok {
			continue
		}
		endpoint, err := p.check(ctx, httpPort, tcpPort)
		if err == nil {
			v.settings.HTTPPort, v.settings.TCPPort = httpPort, tcpPort // also after a restart
			endpoint.PID = c.pid
			return endpoint, nil
		}
		if ctx.Err() == nil {
			lastErr = err
		}
	}
}

// addPortTaken adds ErrPortTaken to an error if the output of the engine shows that a port was
// taken between the check and the start.
func addPortTaken(output string, err error) error {
	if strings.Contains(output, "Address already in use") {
		return fmt.Errorf("%w: %w", ErrPortTaken, err)
	}
	return err
}

type readinessProbe struct {
	settings settings
	client   *http.Client
}

// check returns the endpoint if the engine of this start answers. It creates the database.
func (p *readinessProbe) check(ctx context.Context, httpPort, tcpPort int) (Connection, error) {
	s := p.settings
	base := "http://" + net.JoinHostPort(loopback, strconv.Itoa(httpPort))
	answer, err := p.query(ctx, base, "SELECT displayName(), version()")
	if err != nil {
		return Connection{}, err
	}
	name, version, _ := strings.Cut(answer, "\t")
	if name != s.Nonce {
		return Connection{}, fmt.Errorf("another program answers on port %d", httpPort)
	}
	if _, err := p.query(ctx, base, "CREATE DATABASE IF NOT EXISTS `"+database+"`"); err != nil {
		return Connection{}, err
	}
	return Connection{
		HTTPURL:        base,
		NativeURL:      "clickhouse://" + net.JoinHostPort(loopback, strconv.Itoa(tcpPort)),
		User:           userCourier,
		Password:       s.CourierPassword,
		ReaderUser:     userReader,
		ReaderPassword: s.ReaderPassword,
		Database:       database,
		Version:        version,
	}, nil
}

// query runs a statement and returns the response without its last newline.
func (p *readinessProbe) query(ctx context.Context, base, statement string) (string, error) {
	address := base + "/?" + url.Values{"query": {statement}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, http.NoBody)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(userCourier, p.settings.CourierPassword)
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

// checkPort returns an error if another program listens on a port. Port 0 is always free.
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

// Connection describes how to connect to the engine. The URLs and the log value contain no
// passwords.
type Connection struct {
	HTTPURL   string // such as http://127.0.0.1:8123
	NativeURL string // such as clickhouse://127.0.0.1:9000

	// User may read and write every database.
	User, Password string

	// ReaderUser may read Database.
	ReaderUser, ReaderPassword string

	Database string // it exists
	Version  string // of the engine, such as 26.7.2.1
	PID      int    // of the child; a restart changes it
}

// StoreURL returns the URL of Database with the credentials of User.
func (p Connection) StoreURL() string {
	u, err := url.Parse(p.NativeURL)
	if err != nil {
		return p.NativeURL // store.Open reports the error.
	}
	u.User, u.Path = url.UserPassword(p.User, p.Password), "/"+p.Database
	return u.String()
}

// LogValue omits the passwords.
func (p Connection) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("http_url", p.HTTPURL),
		slog.String("native_url", p.NativeURL),
		slog.String("user", p.User),
		slog.String("database", p.Database),
		slog.String("version", p.Version),
		slog.Int("pid", p.PID),
	)
}

// readiness tells callers of Ready the endpoint of a running engine, or the error of one that has ended.
type readiness struct {
	mu       sync.Mutex
	endpoint Connection
	isReady  bool
	ended    error         // nil: it runs, starts or will be restarted
	changed  chan struct{} // closed at the next change
}

// set wakes the callers of wait.
func (r *readiness) set(endpoint Connection, isReady bool, ended error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endpoint, r.isReady, r.ended = endpoint, isReady, ended
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *readiness) wait(ctx context.Context) (Connection, error) {
	for {
		r.mu.Lock()
		endpoint, isReady, ended, changed := r.endpoint, r.isReady, r.ended, r.changed
		r.mu.Unlock()
		if isReady || ended != nil {
			return endpoint, ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Connection{}, ctx.Err()
		}
	}
}
