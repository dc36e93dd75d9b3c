// Package browsertest drives a headless Chromium in tests, over the DevTools protocol on a pipe.
package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a command or a condition may take. It only guards against hanging.
const patience = time.Minute

// Browser is a running Chromium.
type Browser struct {
	send *os.File

	mu       sync.Mutex
	next     int
	calls    map[int]chan message
	sessions map[string]*Page
	closed   error // why no more messages arrive
}

// message is a command, its result or an event of the DevTools protocol.
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Open starts Chromium until the test ends. It skips the test where there is none.
func Open(t testing.TB) *Browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed: the pages are not tested in a browser")
	}
	commands, send, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	receive, events, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--log-level=3", "--remote-debugging-pipe",
		"--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{commands, events} // descriptors 3 and 4
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = commands.Close(), events.Close()

	b := &Browser{send: send, calls: map[int]chan message{}, sessions: map[string]*Page{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.receive(receive)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has no state to keep
		_ = cmd.Wait()
		<-done
		_, _ = send.Close(), receive.Close()
		if t.Failed() {
			t.Logf("Chromium: %s", log.Bytes()[max(0, log.Len()-1000):])
		}
	})
	return b
}

// receive distributes messages, which end with a zero byte, until the pipe closes.
func (b *Browser) receive(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		var m message
		if err == nil {
			err = json.Unmarshal(text[:len(text)-1], &m)
		}
		b.mu.Lock()
		if err != nil {
			b.closed = fmt.Errorf("read from Chromium: %w", err)
			for _, call := range b.calls {
				close(call)
			}
			b.calls = nil
			b.mu.Unlock()
			return
		}
		if call := b.calls[m.ID]; call != nil {
			call <- m
			delete(b.calls, m.ID)
		} else if p := b.sessions[m.SessionID]; p != nil {
			p.note(&m)
		}
		b.mu.Unlock()
	}
}

// call sends a command and decodes its result into result, unless that is nil.
func (b *Browser) call(session, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	b.mu.Lock()
	if b.closed != nil {
		b.mu.Unlock()
		return b.closed
	}
	b.next++
	m := message{ID: b.next, SessionID: session, Method: method, Params: text}
	reply := make(chan message, 1)
	b.calls[m.ID] = reply
	b.mu.Unlock()

	if text, err = json.Marshal(m); err != nil {
		return err
	}
	if _, err := b.send.Write(append(text, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m, ok := <-reply:
		if !ok {
			return fmt.Errorf("%s: Chromium ended", method)
		}
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer within %s", method, patience)
	}
}

// Page is an open page.
type Page struct {
	t       testing.TB
	browser *Browser
	target  string
	session string

	errors []string // guarded by Browser.mu
}

// Page opens an address in a window of a size in CSS pixels.
func (b *Browser) Page(t testing.TB, address string, width, height int) *Page {
	t.Helper()
	p := &Page{t: t, browser: b}
	var target struct{ TargetID string }
	p.must(b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	var session struct{ SessionID string }
	p.must(b.call("", "Target.attachToTarget",
		map[string]any{"targetId": target.TargetID, "flatten": true}, &session))
	p.target, p.session = target.TargetID, session.SessionID
	b.mu.Lock()
	b.sessions[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Runtime", "Log", "Page", "Network"} {
		p.Do(domain+".enable", map[string]any{})
	}
	p.Do("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
	})
	p.Do("Page.navigate", map[string]any{"url": address})
	return p
}

// Close closes the page and its connections.
func (p *Page) Close() {
	p.t.Helper()
	p.must(p.browser.call("", "Target.closeTarget", map[string]any{"targetId": p.target}, nil))
}

// note records exceptions and errors of the page. The caller holds Browser.mu.
func (p *Page) note(m *message) {
	if m.Method == "Runtime.exceptionThrown" ||
		m.Method == "Log.entryAdded" && bytes.Contains(m.Params, []byte(`"level":"error"`)) {
		p.errors = append(p.errors, string(m.Params))
	}
}

// Errors returns the exceptions and errors so far that contain none of the texts.
func (p *Page) Errors(except ...string) []string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.errors), func(e string) bool {
		return slices.ContainsFunc(except, func(x string) bool { return strings.Contains(e, x) })
	})
}

func (p *Page) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// Do sends a command of the DevTools protocol.
func (p *Page) Do(method string, params any) {
	p.t.Helper()
	p.must(p.browser.call(p.session, method, params, nil))
}

// Eval evaluates an expression, which may be a promise, and decodes its JSON value into result.
func (p *Page) Eval(expression string, result any) error {
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	err := p.browser.call(p.session, "Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true,
	}, &answer)
	if err != nil {
		return err
	}
	if e := answer.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s", expression, e.Exception.Description)
	}
	if result == nil || len(answer.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(answer.Result.Value, result)
}

// Must evaluates an expression and fails the test on an error.
func (p *Page) Must(expression string) {
	p.t.Helper()
	p.must(p.Eval(expression, nil))
}

// Text returns the text of the first element that a selector finds, or "".
func (p *Page) Text(selector string) string {
	p.t.Helper()
	var text string
	quoted, _ := json.Marshal(selector)
	p.must(p.Eval(fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quoted), &text))
	return text
}

// WaitFor waits until an expression is true. An error counts as false, because the page may be
// loading.
func (p *Page) WaitFor(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		met := false
		err := p.Eval("Boolean("+expression+")", &met)
		if err == nil && met {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s is not true; error %v; the page shows:\n%s", expression, err, p.Text("body"))
		case <-tick.C:
		}
	}
}

// Screenshot writes the whole page to a PNG file.
func (p *Page) Screenshot(file string) {
	p.t.Helper()
	var shot struct{ Data string }
	p.must(p.browser.call(p.session, "Page.captureScreenshot",
		map[string]any{"captureBeyondViewport": true}, &shot))
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	p.must(err)
	p.must(os.WriteFile(file, data, 0o600))
}
