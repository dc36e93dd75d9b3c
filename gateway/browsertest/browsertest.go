// Package browsertest opens pages in a headless Chromium in tests.
package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
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

// patience is how long a command or a condition may take. It only guards against hanging.
const patience = 5 * time.Minute

// Browser is a running Chromium.
type Browser struct{ ctx context.Context }

// Open starts Chromium until the test ends. It skips the test where there is none.
func Open(t testing.TB) *Browser {
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
	return &Browser{ctx}
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

// Page is an open page.
type Page struct {
	t     testing.TB
	ctx   context.Context
	close context.CancelFunc

	mu     sync.Mutex
	errors []string
}

// Page opens an address in a window of a size in CSS pixels.
func (b *Browser) Page(t testing.TB, address string, width, height int) *Page {
	t.Helper()
	p := &Page{t: t}
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
func (p *Page) Close() { p.close() }

// note records exceptions and errors of the page.
func (p *Page) note(event any) {
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
func (p *Page) Errors(except ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.errors), func(e string) bool {
		return slices.ContainsFunc(except, func(x string) bool { return strings.Contains(e, x) })
	})
}

func (p *Page) do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

func (p *Page) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// PreferDark makes the page believe that its user prefers dark colours.
func (p *Page) PreferDark() {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	p.must(err)
}

// Eval evaluates an expression, which may be a promise, and decodes its JSON value into result.
func (p *Page) Eval(expression string, result any) error {
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
func (p *Page) Must(expression string) {
	p.t.Helper()
	p.must(p.do(chromedp.Evaluate[chromedp.Void](expression, chromedp.EvalAwaitPromise)))
}

// Text returns the text of the first element that a selector finds, or "".
func (p *Page) Text(selector string) string {
	p.t.Helper()
	var text string
	quoted, _ := json.Marshal(selector) // cannot fail for a string
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
	const lossless = 100
	image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(lossless))
	p.must(err)
	p.must(os.WriteFile(file, image, 0o600))
}
