package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"courier/gateway/browsertest"
)

// A page reports its exceptions and failed requests, which the tests of pages rely on.
func TestPage_ReportsErrors(t *testing.T) {
	browser := browsertest.Open(t)
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
