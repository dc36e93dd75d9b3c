package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	realadvisor "courier/advisor"
	"courier/bus"
	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"
)

// widths are the windows in which the pages are tested: a desktop and a telephone.
var widths = []int{1440, 390}

// screenshot writes a screenshot of the page to the directory of COURIER_SCREENSHOTS, if it is set.
func screenshot(t *testing.T, p *browserPage, name string, width int) {
	t.Helper()
	if dir := os.Getenv("COURIER_SCREENSHOTS"); dir != "" {
		p.Screenshot(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, width)))
	}
}

// accessibilityRules are the rules of axe-core, which npm fetches. Without npm or its registry the pages are
// not checked, and the test says so.
var accessibilityRules = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "axe")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	install := exec.Command("npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund",
		"axe-core@4.14.1")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(text), err
})

// violations returns the rules of accessibility that the page breaks, with the elements.
func violations(t *testing.T, p *browserPage) (all []string) {
	t.Helper()
	rules, err := accessibilityRules()
	if err != nil {
		t.Skipf("NO PAGE WAS CHECKED FOR ACCESSIBILITY: axe-core cannot be installed: %v", err)
	}
	p.Must(rules + "; 0")
	if err := p.Eval(`axe.run().then((r) => r.violations.map((v) =>
		v.id + ': ' + v.help + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).slice(0, 3).join()))`, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// No view breaks a rule of axe-core, in light and dark.
func TestBrowser_IsAccessible(t *testing.T) {
	browser, b, h := openBrowser(t)
	runJob(t, b, "ended", time.Now().Add(-time.Minute), 12, "finished")
	runJob(t, b, "risky", time.Now().Add(-40*time.Second), 3, "")
	sample := example[schemas.Sample](t, "sample")
	sample.At = time.Now()
	if _, err := b.Publish(within(t), sample); err != nil {
		t.Fatal(err)
	}
	for path, loaded := range map[string]string{
		"/": "#now-table tbody tr", "/jobs": "#jobs-table tbody tr", "/jobs/ended": "#job-receipt dd",
		"/jobs/risky": "#job-advice li", "/compare?jobs=ended,risky": "#compare-table tbody tr",
		"/nodes": "#nodes-table tbody tr", "/nodes/" + sample.Node: "#node-facts dd",
		"/attainment": "#score:not([data-loading])", "/regressors": "#regressors", "/nothing": "#missing h2",
		"/what-if?model=cnn&cpus=2&batch_sizes=8,16&epochs=3&slo=1m": "#what-if-table tbody tr",
	} {
		p := browser.Page(t, h.url+path, 1440, 900)
		p.WaitFor(fmt.Sprintf("document.querySelector(%q)", loaded))
		light := violations(t, p)
		p.PreferDark()
		if all := append(light, violations(t, p)...); len(all) > 0 {
			t.Errorf("%s breaks %s", path, strings.Join(all, "\n"))
		}
		if path == "/nothing" { // an element that breaks a rule is found
			p.Must(`document.querySelector('main').append(document.createElement('img'))`)
			if len(violations(t, p)) == 0 {
				t.Error("an image without a text breaks no rule: the rules are not applied")
			}
		}
		p.Close()
	}
}

// checkPage fails the test if the page reported an error, other than with the excepted texts, or is
// wider than its window.
func checkPage(t *testing.T, p *browserPage, name string, width int, except ...string) {
	t.Helper()
	if errors := p.Errors(except...); len(errors) > 0 {
		t.Errorf("%s at %d pixels reported %s", name, width, strings.Join(errors, "\n"))
	}
	var wide struct {
		Page int
		Who  []string
	}
	err := p.Eval(fmt.Sprintf(`({page: document.documentElement.scrollWidth, who:
		[...document.querySelectorAll('body *')]
			.filter((e) => e.getBoundingClientRect().right > %d && !e.closest('svg, .u-wrap'))
			.slice(0, 5).map((e) => e.outerHTML.slice(0, 120))})`, width+1), &wide)
	if err != nil {
		t.Fatal(err)
	}
	if wide.Page > width {
		t.Errorf("%s at %d pixels is %d pixels wide because of %q", name, width, wide.Page, wide.Who)
	}
}

// startAdvisor runs an advisor until the test ends.
func startAdvisor(t *testing.T, b *bus.Bus) {
	t.Helper()
	a := realadvisor.New(b, realadvisor.Options{}, slog.New(slog.DiscardHandler), nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("advisor ended with %v", err)
		}
	})
	eventually(t, a.Ready)
}

// openBrowser starts a browser, a NATS server with an advisor, and a gateway.
func openBrowser(t *testing.T) (*browser, *bus.Bus, *testGateway) {
	t.Helper()
	browser := startBrowser(t)
	b := bustest.New(t)
	startAdvisor(t, b)
	return browser, b, open(t, b, gateway.Options{})
}

// runJob is runJobOn for a job on node-a.
func runJob(t *testing.T, b *bus.Bus, id string, began time.Time, epochs int, outcome string) {
	t.Helper()
	runJobOn(t, b, "node-a", id, began, epochs, outcome)
}

// runJobOn publishes the events of a job that was submitted some time ago: the request with its
// advice, the start, epochs with new advice, and the end, unless outcome is "".
func runJobOn(t *testing.T, b *bus.Bus, node, id string, began time.Time, epochs int, outcome string) {
	t.Helper()
	setting := schemas.Setting{
		Model: "digits-mlp", BatchSize: 16, CPUs: 2, Epochs: 12, Nodes: []string{node},
	}
	stamp := func(event string, run uint32, seconds float64) schemas.JobStamp {
		return schemas.JobStamp{
			Stamp: schemas.Stamp{
				EventID: id + "/" + event, At: began.Add(time.Duration(seconds * float64(time.Second))),
			},
			JobID: id, Run: run,
		}
	}
	advice := func(stamp schemas.JobStamp, done int, seconds float64) schemas.Advice {
		bound, probability, accuracy := 1.2*seconds+2, 0.97, 0.96
		chosen := schemas.Alternative{
			BatchSize: 16, CPUs: 2, Epochs: uint32(12 - done), PredictedSeconds: &seconds,
			UpperBoundSeconds: &bound, Probability: &probability, PredictedAccuracy: &accuracy,
		}
		return schemas.Advice{
			JobStamp: stamp, Decision: schemas.MeetsSLO, Action: schemas.ActionKeep,
			Message: "the SLO is met with probability 0.97", Model: "digits-mlp", SLOSeconds: 45,
			Confidence: 0.95, Nodes: setting.Nodes, EpochsDone: uint32(done), Chosen: &chosen,
			Alternatives: []schemas.Alternative{chosen},
		}
	}

	submitted := stamp("submitted", 0, 0)
	events := []schemas.Event{
		&schemas.Submitted{
			JobStamp: submitted,
			Request: schemas.JobRequest{
				JobID: id, Model: "digits-mlp", CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 12,
				SLO: schemas.Duration(45 * time.Second), Nodes: setting.Nodes, Confidence: 0.95,
			},
			Advice: advice(submitted, 0, 30),
		},
		&schemas.Started{JobStamp: stamp("started", 1, 1), Setting: setting},
	}
	for i := range epochs {
		loss, accuracy, wait := 2.0/float64(i+1), 1-0.5/float64(i+1), 0.02*float64(i%3)
		jobs := 1 + float64(i%2)
		seconds := 2.2 + 0.2*float64(i%3)
		end := 4 + 2.4*float64(i)
		next := advice(stamp(fmt.Sprint("advice", i), 1, end+0.1), i+1, 2.4*float64(11-i)+0.3*float64(i%4))
		next.CauseSequence = uint64(i + 1)
		events = append(events, &schemas.Epoch{
			JobStamp: stamp(fmt.Sprint("epoch", i), 1, end), Setting: setting, Epoch: uint32(i + 1),
			DurationSeconds: seconds, DurationSource: schemas.DurationReported, NodeCores: 4, Loss: &loss,
			Accuracy: &accuracy, JobIOFullPressureRatio: &wait, ConcurrentJobs: &jobs,
		}, &next)
	}
	if outcome != "" {
		startup := 1.5
		events = append(events, &schemas.Ended{
			JobStamp: stamp(outcome, 1, 5+2.4*float64(epochs)), Setting: setting, Outcome: outcome,
			Output:     "Epoch 12\ndone",
			EpochsDone: uint32(epochs), StartupSeconds: &startup,
		})
	}
	for _, e := range events {
		if _, err := b.Publish(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBrowser_ShowsAJobOnItsPage(t *testing.T) {
	browser, b, h := openBrowser(t)
	began := time.Now().Add(-5 * time.Minute)
	runJob(t, b, "ended", began, 12, "finished")
	runJob(t, b, "beside", began.Add(10*time.Second), 6, "")
	runJob(t, b, strings.Repeat("fine-tuning-", 5)+"long", began.Add(-time.Hour), 0, "")

	for _, width := range widths {
		p := browser.Page(t, h.url+"/jobs", width, 900)
		p.WaitFor(`document.querySelectorAll('#jobs-table tbody tr').length === 3`)
		p.WaitFor(`document.querySelector('#connection').dataset.state === 'live'`)
		for section, want := range map[string]bool{"jobs": true, "nodes": false, "now": false, "job": false} {
			visible := false
			if err := p.Eval(fmt.Sprintf("document.getElementById(%q).checkVisibility()", section),
				&visible); err != nil || visible != want {
				t.Errorf("/jobs shows section %s: %v, %v, want %v", section, visible, err, want)
			}
		}
		if got := p.Text("nav [aria-current]"); got != "Jobs" {
			t.Errorf("current page of the menu = %q, want Jobs", got)
		}
		checkPage(t, p, "/jobs", width)
		screenshot(t, p, "jobs", width)

		// A click leads to the page of the job.
		p.Must(`document.querySelector('a[href="/jobs/ended"]').click()`)
		p.WaitFor(`location.pathname === '/jobs/ended' && document.querySelectorAll('#job-receipt dd').length > 2`)
		p.WaitFor(`document.querySelectorAll('.plots canvas').length === 4`)
		for selector, want := range map[string]string{
			"#job-title": "ended", "#job-summary": "12 of 12", "#job-receipt": "start-up",
			"#job-output": "epoch 12\ndone", "#job-advice": "meets slo",
			"#job-changes": "started", "#job-neighbours": "beside",
		} {
			if got := p.Text(selector); !strings.Contains(strings.ToLower(got), want) {
				t.Errorf("%s of the page of a job = %q, want %q in it", selector, got, want)
			}
		}
		p.Must(`document.querySelector('#job-epochs-details').open = true`)
		if got := p.Text("#job-epochs tbody"); !strings.Contains(got, "95.83") {
			t.Errorf("table of epochs = %q, want the accuracy 95.83 %% of the last one", got)
		}
		checkPage(t, p, "/jobs/ended", width)
		screenshot(t, p, "job", width)
		p.Close()
	}
}

func TestBrowser_FollowsARunningJobAndCancelsIt(t *testing.T) {
	browser, b, h := openBrowser(t)
	runJob(t, b, "running", time.Now().Add(-time.Minute), 3, "")

	p := browser.Page(t, h.url+"/jobs/running", 1440, 900)
	p.WaitFor(`document.querySelector('#job-summary').innerText.includes('3 of 12')`)
	// A new epoch appears without a click.
	loss := 0.2
	_, err := b.Publish(within(t), &schemas.Epoch{
		JobStamp: schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: "running/epoch4", At: time.Now()}, JobID: "running", Run: 1,
		},
		Setting: schemas.Setting{
			Model: "digits-mlp", BatchSize: 16, CPUs: 2, Epochs: 12, Nodes: []string{"node-a"},
		},
		Epoch: 4, DurationSeconds: 2, DurationSource: schemas.DurationReported, NodeCores: 4, Loss: &loss,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.WaitFor(`document.querySelector('#job-summary').innerText.includes('4 of 12')`)

	p.Must(`document.querySelector('#job-cancel').click()`)
	p.WaitFor(`document.querySelector('#cancel-dialog').open`)
	p.Must(`document.querySelector('#cancel-no').click()`)
	var status schemas.JobStatus
	if err := b.Request(within(t), schemas.SubjectJobStatus, &schemas.JobStatusRequest{JobID: "running"},
		&status); err != nil || status.State != schemas.StateRunning {
		t.Fatalf("status after the dialog was declined = %s, %v, want running", status.State, err)
	}
	p.Must(`document.querySelector('#job-cancel').click()`)
	p.Must(`document.querySelector('#cancel-reason').value = 'wrong data'`)
	screenshot(t, p, "cancel", 1440)
	p.Must(`document.querySelector('#cancel-form').requestSubmit()`)
	p.WaitFor(`document.querySelector('#job-headline').innerText.includes('cancelled: wrong data')`)
	p.WaitFor(`document.querySelector('#job-cancel').hidden`)
	checkPage(t, p, "/jobs/running", 1440)
}

func TestBrowser_ShowsEachPage(t *testing.T) {
	browser, b, h := openBrowser(t)
	runJob(t, b, "ended", time.Now().Add(-time.Minute), 12, "finished")
	runJob(t, b, "slower", time.Now().Add(-2*time.Minute), 9, "finished")
	publish := example[schemas.Sample](t, "sample")
	publish.At = time.Now()
	if _, err := b.Publish(within(t), publish); err != nil {
		t.Fatal(err)
	}
	for _, width := range widths {
		for path, section := range map[string]string{
			"/": "now", "/nodes": "nodes", "/nodes/" + publish.Node: "node", "/attainment": "score",
			"/attainment?since=2026-11-01T08:00:00Z": "score", "/what-if": "predict", "/regressors": "regressors",
			"/compare?jobs=ended,slower": "compare", "/nothing": "missing",
		} {
			p := browser.Page(t, h.url+path, width, 900)
			p.WaitFor(fmt.Sprintf(`document.getElementById(%q).checkVisibility()`, section))
			var shown []string
			if err := p.Eval(`[...document.querySelectorAll('main > section')].filter((s) => s.checkVisibility()).map((s) => s.id)`, &shown); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(shown, []string{section}) {
				t.Errorf("%s shows %q, want %s alone", path, shown, section)
			}
			p.WaitFor(`document.querySelector('#connection').innerText !== 'Connecting…'`)
			// The trainer does not run here; its list is unavailable, and the page says so.
			checkPage(t, p, path, width, "503", "/nothing")
			screenshot(t, p, "page-"+section, width)
			p.Close()
		}
	}
}

func TestBrowser_SearchesJobs(t *testing.T) {
	browser, b, h := openBrowser(t)
	for _, id := range []string{"alpha-1", "alpha-2", "beta-1"} {
		runJob(t, b, id, time.Now().Add(-time.Minute), 1, "")
	}
	runJob(t, b, "ended", time.Now().Add(-time.Second), 1, "finished")
	p := browser.Page(t, h.url+"/jobs?search=beta", 1440, 900)
	rows := `[...document.querySelectorAll('#jobs-table tbody th a')].map((a) => a.textContent).join()`
	p.WaitFor(rows + ` === 'beta-1'`)
	input := func(text string) {
		p.Must(fmt.Sprintf(`(() => { const i = document.querySelector('#jobs-search');
			i.value = %q; i.dispatchEvent(new Event('input')); })()`, text))
	}
	input("")
	p.WaitFor(rows + ` === 'beta-1,alpha-2,alpha-1,ended'`) // the open ones first
	input("ALPHA")
	p.WaitFor(rows + ` === 'alpha-2,alpha-1'`)
	p.WaitFor(`location.search === '?search=ALPHA'`)
	p.Must(`[...document.querySelectorAll('#jobs-table .sort')].find((b) => b.textContent === 'Job').click()`)
	p.WaitFor(rows + ` === 'alpha-1,alpha-2' && location.search === '?search=ALPHA&sort=id'`)
	p.Must(`[...document.querySelectorAll('#jobs-table [type=checkbox]')].forEach((box) => box.click())`)
	p.WaitFor(`document.querySelector('#jobs-compare-link').href.endsWith('/compare?jobs=alpha-1,alpha-2')`)
	input("gamma")
	p.WaitFor(`document.querySelector('#jobs-none').checkVisibility()`)
	checkPage(t, p, "/jobs", 1440)
}

// A long table has the rows of a screen at first, and more when its reader scrolls; sorting is then quick. A
// list shows what happens without a click.
func TestBrowser_DrawsLongTablesInParts(t *testing.T) {
	browser, b, h := openBrowser(t)
	for n := range 200 {
		s := sample(t, fmt.Sprintf("node-%03d", n), 1)
		s.At = time.Now()
		h.publish(t, s)
	}
	p := browser.Page(t, h.url+"/nodes?sort=node", 1440, 900)
	rows := `[...document.querySelectorAll('#nodes-table tbody tr')].map((r) => r.dataset.key)`
	p.WaitFor(rows + `[0] === 'node-000' && document.querySelectorAll('#nodes-map a').length === 200`)
	p.WaitFor(`document.querySelector('#nodes-table + .note').innerText.endsWith('of 200 rows; scroll for more.')`)
	p.WaitFor(rows + `.length < 200`)
	p.Must(`document.querySelector('#nodes-table .sort').click()`)
	p.WaitFor(rows + `[0] === 'node-199' && ` + rows + `.length < 200`)
	p.WaitFor(`scrollTo(0, document.body.scrollHeight), ` + rows + `.length === 200`)
	checkPage(t, p, "/nodes", 1440)
	p.Close()

	p = browser.Page(t, h.url+"/jobs", 1440, 900)
	p.WaitFor(`document.querySelector('#jobs-empty').checkVisibility()`)
	runJob(t, b, "new", time.Now().Add(-time.Minute), 1, "")
	p.WaitFor(`document.querySelector('#jobs-table tbody th a').innerText === 'new'`)
}

// The first page has the job at risk with what to do, and the title of the window their number.
func TestBrowser_ShowsWhichJobIsAtRisk(t *testing.T) {
	browser, b, h := openBrowser(t)
	runJob(t, b, "risky", time.Now().Add(-40*time.Second), 1, "") // its SLO of 45 s is almost over
	p := browser.Page(t, h.url+"/", 1440, 900)
	p.WaitFor(`document.querySelector('#now-counts dd')?.innerText === '1'`)
	p.WaitFor(`document.querySelector('#now-table tr.risk').innerText.includes('at risk')`)
	p.WaitFor(`document.title === '(1) Now – Courier'`)
	checkPage(t, p, "/", 1440)
	p.Must(`{
		const [, slo, action] = document.querySelector('#now-table tbody tr').children, range = document.createRange();
		[slo.lastChild.textContent, action.querySelector('span').textContent] = ['of\u00a018m\u00a057s', 'long '.repeat(90)];
		range.selectNodeContents(slo.lastChild);
		if (range.getClientRects().length !== 1) throw Error('a duration breaks beside a long proposal');
	}`)
	p.Must(`document.querySelector('#now-table th a').click()`)
	p.WaitFor(`document.querySelector('#job-what-if').checkVisibility()`)
	p.Must(`document.querySelector('#job-what-if').click()`)
	p.WaitFor(`document.querySelectorAll('#what-if-table tbody tr').length === 1`)
}

// The page of the regressors compares measured with predicted times, of all models or of one.
func TestBrowser_ComparesMeasuredAndPredictedTimes(t *testing.T) {
	browser, b, h := openBrowser(t)
	runJob(t, b, "ended", time.Now().Add(-time.Minute), 12, "finished")
	runJob(t, b, "incomplete", time.Now().Add(-time.Minute), 3, "finished")
	p := browser.Page(t, h.url+"/regressors", 390, 900)
	p.WaitFor(`document.querySelectorAll('#runs-chart circle').length === 1`)
	const want = "ended: predicted 30\u00a0s, measured 29.4\u00a0s"
	if got := p.Text("#runs-models"); !strings.Contains(got, "98\u00a0%") {
		t.Errorf("table of models = %q, want 98 %% in it", got)
	}
	p.WaitFor(fmt.Sprintf(`document.querySelector('#runs-chart circle title').textContent === %q`, want))
	p.Must(`document.querySelector('#runs-models a').click()`)
	p.WaitFor(`location.search === '?model=digits-mlp' && document.querySelector('#runs-models tr.chosen')`)
	checkPage(t, p, "/regressors", 390, "503")
}

// A prediction is part of the address, with a chart and the command that runs it.
func TestBrowser_PredictsWhatTheAddressAsks(t *testing.T) {
	browser, _, h := openBrowser(t)
	p := browser.Page(t, h.url+"/what-if?model=cnn&cpus=2&batch_sizes=8,16&epochs=3&slo=1m", 1440, 900)
	p.WaitFor(`document.querySelectorAll('#what-if-table tbody tr').length === 2`)
	want := "courier run --model cnn --cpus 2 --batch-sizes 8,16 --epochs 3 --slo 1m -- python train.py"
	if got := p.Text("#what-if-command"); !strings.HasPrefix(got, want) {
		t.Errorf("command = %q, want %q first", got, want)
	}
	p.Must(`document.querySelector('#epochs').value = '5'`)
	p.Must(`document.querySelector('#what-if').requestSubmit()`)
	p.WaitFor(`document.querySelector('#what-if-command').innerText.includes('--epochs 5')`)
	p.WaitFor(`new URLSearchParams(location.search).get('epochs') === '5'`)
	checkPage(t, p, "/what-if", 1440)

	// The submitted job waits for the command that starts it.
	p.Must(`document.querySelector('#what-if-submit').click()`)
	p.WaitFor(`location.pathname.startsWith('/jobs/') && document.querySelector('#job-command').textContent
		.startsWith('courier run --id ' + location.pathname.slice(6) + ' --model cnn ')`)
	if got := p.Text("#job-next"); !strings.Contains(got, "Start it with courier run") {
		t.Errorf("next action of a submitted job = %q, want that it is started", got)
	}
}

// proxyTo starts a proxy to an address. Requests for which pass is false fail.
func proxyTo(t *testing.T, address string, pass func(*http.Request) bool) *httptest.Server {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	var closed atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if closed.Load() || !pass(r) {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		closed.Store(true) // the page reconnects, and Close waits for every connection
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// While the connection is lost, the data is dimmed and its time is shown.
func TestBrowser_DimsDataOfALostConnection(t *testing.T) {
	browser, _, h := openBrowser(t)
	var cut atomic.Bool
	s := proxyTo(t, h.url, func(*http.Request) bool { return !cut.Load() })

	p := browser.Page(t, s.URL+"/", 1440, 900)
	p.WaitFor(`document.querySelector('#connection').dataset.state === 'live'`)
	cut.Store(true)
	s.CloseClientConnections()
	p.WaitFor(`document.querySelector('#connection').innerText.includes('data of')`)
	p.WaitFor(`getComputedStyle(document.querySelector('main')).opacity === '0.55'`)
	cut.Store(false)
	p.WaitFor(`getComputedStyle(document.querySelector('main')).opacity === '1'`)
}

// A section is called empty only while it is known to be empty: not before its data has arrived,
// nor while the connection is lost.
func TestBrowser_CallsASectionEmptyOnlyIfItIs(t *testing.T) {
	browser, _, h := openBrowser(t)
	asked, arrive := make(chan struct{}, 1), make(chan struct{})
	var cut atomic.Bool
	s := proxyTo(t, h.url, func(r *http.Request) bool {
		if r.URL.Path == "/api/v1/jobs" {
			select {
			case asked <- struct{}{}:
			default: // another request has come before
			}
			select {
			case <-arrive:
			case <-r.Context().Done():
			}
		}
		return !cut.Load()
	})
	p := browser.Page(t, s.URL+"/", 1440, 900)
	sections := func(class string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('main > section .%s')]
			.filter((e) => e.checkVisibility()).map((e) => e.closest('section').id).join()`, class)
	}
	check := func(when, empty, loading string) {
		t.Helper()
		for class, want := range map[string]string{"empty": empty, "loading": loading} {
			var got string
			if err := p.Eval(sections(class), &got); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s: sections with visible .%s are %q, want %q", when, class, got, want)
			}
		}
	}

	<-asked                                                     // the view has started
	p.Must(`import('/web/now.js').then((now) => now.redraw())`) // as the page does each second
	check("before the data arrives", "", "now")
	if got := p.Text("#now .loading"); got != "Loading…" {
		t.Errorf("the jobs are %q before they arrive, want Loading…", got)
	}

	close(arrive)
	p.WaitFor(sections("loading") + ` === ''`)
	check("after the data arrived", "now", "")

	p.WaitFor(`document.querySelector('#connection').dataset.state === 'live'`)
	cut.Store(true)
	s.CloseClientConnections()
	p.WaitFor(`document.querySelector('#connection').dataset.state === 'lost'`)
	check("while the connection is lost", "", "now")
	if got := p.Text("#now .loading"); !strings.Contains(got, "Unknown") {
		t.Errorf("the results are %q while the connection is lost, want Unknown", got)
	}

	var failure string
	err := p.Eval(`import('/web/api.js').then(({ ask }) => ask('jobs')).catch((e) => e.message)`, &failure)
	if err != nil || failure != "Courier does not answer" {
		t.Errorf("request while the connection is lost = %q, %v, want that Courier does not answer",
			failure, err)
	}

	cut.Store(false)
	p.WaitFor(`document.querySelector('#connection').dataset.state === 'live'`)
	check("after the connection is back", "now", "")
}

func TestBrowser_FormatsFigures(t *testing.T) {
	p := startBrowser(t).Page(t, open(t, bustest.New(t), gateway.Options{}).url, 1440, 900)
	p.WaitFor(`document.readyState === 'complete'`)
	for expression, want := range map[string]string{
		"duration(undefined)": "–", "percent(0.125, 1)": "12.5 %",
		"probability(0.999)": "> 99 %", "probability(0.001)": "< 1 %", "bytes(3 * 2 ** 30)": "3 GiB",
		"shape({cpus: 1})": "1 CPU", "shape({cpus: 2, workers: 3})": "3 workers of 2 CPUs each",
		"number(1234567)": "1,234,567", "modelLevel('a', 'b')": "a@b",
		"heldOutError('epoch_time', {held_out_error: 0})":     "mean error unknown",
		"heldOutError('accuracy', {held_out_error: 0.0041})":  "mean error 0.4 points",
		"heldOutError('startup_time', {held_out_error: 0.2})": "mean error 20.0 %",
	} {
		var got string
		if err := p.Eval("import('/web/format.js').then((f) => f."+expression+")", &got); err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if got = strings.ReplaceAll(got, "\u00a0", " "); got != want {
			t.Errorf("%s = %q, want %q", expression, got, want)
		}
	}

	seconds := []float64{0, 0.0004, 0.05, 9.94, 99.94, 99.96, 119, 3599.4, 3599.6, 7260, 86369, 86371, 180000}
	for _, s := range seconds { // also the command line prints them so
		var got string
		p.must(p.Eval(fmt.Sprintf("import('/web/format.js').then((f) => f.duration(%g))", s), &got))
		if want := schemas.FormatSeconds(s); strings.ReplaceAll(got, "\u00a0", " ") != want {
			t.Errorf("duration(%g) = %q, want %q", s, got, want)
		}
	}
	for expression, want := range map[string]string{ // of axes
		"timeTicks(0, 71)": "0 15 30 45 60", "timeTicks(0, 0.9)": "0 0.2 0.4 0.6 0.8",
		"timeTicks(52, 5000, true)": "60 300 900 3600", "timeTicks(31, 64, true)": "40 50 60",
		"ticks(0.91, 0.953, 0.01)": "0.91 0.92 0.93 0.94 0.95",
	} {
		var got []float64
		p.must(p.Eval("import('/web/chart.js').then((c) => c."+expression+".map((t) => +t.toPrecision(6)))", &got))
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != want {
			t.Errorf("%s = %s, want %s", expression, text, want)
		}
	}

	var free int
	err := p.Eval(`import('/web/nodes.js').then((n) =>
		n.freeCPUs({ sample: { cores: 8 } }, [{ cpus: 2, nodes: ['a'] }], 3))`, &free)
	if err != nil || free != 3 {
		t.Errorf("CPUs without a job = %d, %v, want 3 of 8, as one job runs on 2 and another holds 3", free, err)
	}
}

// Lists say of each job whether it meets its SLO, also when nothing is predicted.
func TestBrowser_DescribesJobs(t *testing.T) {
	p := startBrowser(t).Page(t, open(t, bustest.New(t), gateway.Options{}).url, 1440, 900)
	p.WaitFor(`document.readyState === 'complete'`)
	const over, ended = `slo_seconds: 60, deadline_at: '2026-01-01T00:01:00Z'`, `ended_at: '2026-01-01T00:02:01Z'`
	const trained = `trained_at: '2026-01-01T00:01:02Z', `
	for expression, want := range map[string]string{
		"outcome({state: 'queued', " + over + "})":                                         "! deadline is over",
		"outcome({state: 'running', " + over + ", probability: 0.2, at_risk: true})":       "! at risk: 20 %",
		"outcome({state: 'refused', " + over + "})":                                        "–",
		"outcome({state: 'queued', slo_seconds: 60, deadline_at: '2999-01-01T00:00:00Z'})": "–",
		"action({state: 'submitted', " + over + "})[0]":                                    "Cancel it: it is too late",
		"action({proposal: 'p', probability: 0.274, saved_probability: 0.271})[1]":         "SLO 27 % as without it",
		"action({proposal: 'p', probability: 0.26, saved_probability: 0.271})[1]":          "SLO 27 % instead of 26 %",
		"isNeverStarted({state: 'submitted', " + over + "}).toString()":                    "true",
		"isNeverStarted({state: 'running', " + over + "}).toString()":                      "false",
		"isNeverStarted({state: 'submitted', submitted_at: '2026-01-01T00:01:00Z'}) + ''":  "true",
		"columns.late.cell({state: 'failed', " + over + ", " + ended + "})[0]":             "✕ failed",
		"columns.late.cell({state: 'finished', " + over + ", " + ended + "})[0]":           "61 s",
		"columns.late.cell({state: 'finished', " + over + ", " + trained + ended + "})[0]": "2 s",
	} {
		var got string
		if err := p.Eval("import('/web/jobs.js').then((j) => j."+expression+")", &got); err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if got = strings.ReplaceAll(got, "\u00a0", " "); got != want {
			t.Errorf("%s = %q, want %q", expression, got, want)
		}
	}
}

// An error of 0 means that no run was held out. The chart has no point for it.
func TestBrowser_DrawsOnlyKnownErrors(t *testing.T) {
	p := startBrowser(t).Page(t, open(t, bustest.New(t), gateway.Options{}).url, 1440, 900)
	p.WaitFor(`document.readyState === 'complete'`)
	for errors, want := range map[string]string{"[0, 0]": "", "[0, 0.1]": "1", "[0.2, 0.1]": "2"} {
		var got string
		err := p.Eval(fmt.Sprintf(`import('/web/life.js').then(({ life }) => life({
			target: 'epoch_time', first: 1, promotions: [], drifts: [],
			versions: %s.map((e, i) => ({ model_digest: String(i), state: 'former',
				trained_at: new Date(1000 * i).toISOString(), examples: 4, held_out_error: e })),
		}, 800).map((panel) => panel.querySelectorAll('circle').length).join())`, errors), &got)
		if err != nil || got != want {
			t.Errorf("points of the errors %s = %q, %v, want %q", errors, got, err, want)
		}
	}
}
