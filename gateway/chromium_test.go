package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a running Chromium.
type browser struct{ ctx context.Context }

// startBrowser starts Chromium until the test ends. It skips the test where there is none.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
		chromedp.ExecPath(chromium(t)))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator) // ends with the allocator
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &browser{ctx}
}

func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: the pages are not tested in a browser")
	return ""
}

// browserPage is an open page.
type browserPage struct {
	t     testing.TB
	ctx   context.Context
	close context.CancelFunc

	mu     sync.Mutex
	errors []string
}

// Page opens an address in a window of a size in CSS pixels.
func (b *browser) Page(t testing.TB, address string, width, height int) *browserPage {
	t.Helper()
	p := &browserPage{t: t}
	p.ctx, p.close = chromedp.NewContext(b.ctx)
	p.must(chromedp.Listen(p.ctx, p.note))
	size := chromedp.EmulateViewport(int64(width), int64(height))
	if width < 600 {
		size = chromedp.EmulateViewport(int64(width), int64(height), chromedp.EmulateMobile)
	}
	p.must(p.do(size, chromedp.Navigate(address)))
	return p
}

// Close closes the page and its connections.
func (p *browserPage) Close() { p.close() }

// note records exceptions and errors of the page.
func (p *browserPage) note(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			text += " " + thrown.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			text = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if text != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errors = append(p.errors, text)
	}
}

// Errors returns the exceptions and errors so far that contain none of the texts.
func (p *browserPage) Errors(except ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.errors), func(e string) bool {
		return slices.ContainsFunc(except, func(x string) bool { return strings.Contains(e, x) })
	})
}

func (p *browserPage) do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

func (p *browserPage) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// PreferDark makes the page believe that its user prefers dark colours.
func (p *browserPage) PreferDark() {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	p.must(err)
}

// Eval evaluates an expression, which may be a promise, and decodes its JSON value into result.
func (p *browserPage) Eval(expression string, result any) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	evaluate := chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise)
	value, err := chromedp.Run(ctx, evaluate)
	if err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}
	return json.Unmarshal(value, result)
}

// Must evaluates an expression, which may be a promise, and fails the test on an error.
func (p *browserPage) Must(expression string) {
	p.t.Helper()
	p.must(p.do(chromedp.Evaluate[chromedp.Void](expression, chromedp.EvalAwaitPromise)))
}

// Text returns the text of the first element that a selector finds, or "".
func (p *browserPage) Text(selector string) string {
	p.t.Helper()
	var text string
	quoted, _ := json.Marshal(selector) // cannot fail for a string
	p.must(p.Eval(fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quoted), &text))
	return text
}

// WaitFor waits until an expression is true. An error counts as false, because the page may be
// loading.
func (p *browserPage) WaitFor(expression string) {
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
func (p *browserPage) Screenshot(file string) {
	p.t.Helper()
	const lossless = 100
	image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(lossless))
	p.must(err)
	p.must(os.WriteFile(file, image, 0o600))
}

// A page reports its exceptions and failed requests, which the tests of pages rely on.
func TestBrowserPage_ReportsErrors(t *testing.T) {
	browser := startBrowser(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<title>t</title><p>text</p><img src="/absent"><script>throw Error("thrown")</script>`)
	}))
	defer s.Close()

	p := browser.Page(t, s.URL+"/", 390, 800)
	defer p.Close()
	p.WaitFor("document.readyState === 'complete'")
	if got := p.Text("p"); got != "text" {
		t.Errorf("Text(p) = %q, want text", got)
	}
	var sum int
	if err := p.Eval("Promise.resolve(40 + 2)", &sum); err != nil || sum != 42 {
		t.Errorf("Eval of a promise = %d, %v, want 42", sum, err)
	}
	if err := p.Eval("absent.name", &sum); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("Eval of an unknown name = %v, want an error with the name", err)
	}
	all := strings.Join(p.Errors(), "\n")
	if !strings.Contains(all, "thrown") || !strings.Contains(all, "/absent") {
		t.Errorf("Errors() = %s, want the exception and the failed request", all)
	}
	if rest := p.Errors("thrown", "/absent", "favicon"); len(rest) > 0 {
		t.Errorf("Errors(thrown, /absent) = %q, want none", rest)
	}
}
