package study_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"courier/gateway/browsertest"
	"courier/report/study"
)

// wider lists elements that are outside the window and not in a box that scrolls.
const wider = `(() => {
	const root = document.documentElement
	const outside = e => e.getBoundingClientRect().right > root.clientWidth + 0.5
	const all = [...document.querySelectorAll('body *')].filter(e =>
		outside(e) && !e.closest('.wide > *'))
	const names = all.map(e => e.outerHTML.slice(0, 80))
	return root.scrollWidth > root.clientWidth ? ['the page', ...names] : names
})()`

// The page fits into a window and a phone, and the browser reports no error and requests nothing
// else.
func TestWriteHTML_InABrowser(t *testing.T) {
	browser := browsertest.Open(t)
	long := strings.Repeat("long", 50)
	pages := map[string]string{"names": strings.ReplaceAll(studyRuns(), "a&b's", long)}
	if recovered, err := os.ReadFile(recoveredRuns); err == nil {
		pages["paper"] = string(recovered)
	}
	for name, runs := range pages {
		page := pageOf(t, runs, study.Options{})
		address, requests := serve(t, page)
		for size, width := range map[string]int{"wide": 1440, "phone": 390} {
			p := browser.Page(t, address, width, 900)
			p.WaitFor("document.readyState == 'complete' && document.querySelector('#method')")
			var overflow []string
			if err := p.Eval(wider, &overflow); err != nil {
				t.Fatal(err)
			}
			if len(overflow) > 0 {
				t.Errorf("%s, %s: wider than the window: %s", name, size, overflow)
			}
			if errors := p.Errors(); len(errors) > 0 {
				t.Errorf("%s, %s: %s", name, size, strings.Join(errors, "\n"))
			}
			if directory := os.Getenv("COURIER_SCREENSHOTS"); directory != "" {
				p.Screenshot(filepath.Join(directory, name+"-"+size+".png"))
			}
			if name == "names" && !isDark(t, p) {
				t.Errorf("%s: the page has no dark colours", size)
			}
			p.Close()
		}
		if got := requests(); len(got) > 0 {
			t.Errorf("%s: the page requests %v", name, got)
		}
	}
}

// isDark reports whether the background is darker than the text if the user prefers that.
func isDark(t *testing.T, p *browsertest.Page) bool {
	p.PreferDark()
	dark := false
	const darker = `(() => {
		const sum = colour => colour.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)
		const style = getComputedStyle(document.body)
		return sum(style.backgroundColor) < 120 && sum(style.color) > 500
	})()`
	if err := p.Eval(darker, &dark); err != nil {
		t.Fatal(err)
	}
	if directory := os.Getenv("COURIER_SCREENSHOTS"); directory != "" {
		p.Screenshot(filepath.Join(directory, "dark.png"))
	}
	return dark
}

// serve serves a page, and returns its address and the paths of other requests.
func serve(t *testing.T, page string) (address string, requests func() []string) {
	var mu sync.Mutex
	var others []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			mu.Lock()
			others = append(others, r.URL.Path)
			mu.Unlock()
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page)) // A failed write shows in the browser.
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return others
	}
}
