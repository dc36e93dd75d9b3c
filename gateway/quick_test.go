package gateway_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"courier/schemas"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// sortScript clicks a sortable header and returns the milliseconds until the browser has drawn another first row.
const sortScript = `new Promise((done) => {
	const head = document.querySelector(%q), body = head.closest('table').tBodies[0];
	const first = () => body.rows[0].dataset.key, before = first(), begin = performance.now();
	new MutationObserver((all, o) => {
		if (first() === before) return;
		o.disconnect();
		requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
	}).observe(body, {subtree: true, childList: true});
	head.click();
})`

// An open page does not grow while 1,000 jobs run on 500 nodes and 60 events a second arrive. Jobs that have run
// their epochs end, and others start. The test logs how long the first paint and a click take meanwhile.
func TestBrowser_StaysQuick(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("COURIER_PAGE_TIME"))
	if err != nil {
		t.Skip("takes a time of choice; set COURIER_PAGE_TIME, such as 1h")
	}
	const jobs, nodes, epochs, perSecond = 1000, 500, 12, 60
	browser, b, h := openBrowser(t)
	done, began := make([]uint32, jobs), make([]int, jobs) // epochs of the current job of each place; earlier jobs
	id := func(n int) string { return fmt.Sprintf("job-%04d-%d", n, began[n]) }
	node := func(n int) string { return fmt.Sprintf("node-%03d", n%nodes) }
	setting := func(n int) schemas.Setting {
		return schemas.Setting{Model: "digits-mlp", BatchSize: 16, CPUs: 2, Epochs: epochs, Nodes: []string{node(n)}}
	}
	for n := range jobs {
		runJobOn(t, b, node(n), id(n), time.Now().Add(-time.Minute), 1, "")
		done[n] = 1
	}
	for n := range nodes {
		s := sample(t, node(n), 1)
		s.At = time.Now()
		h.publish(t, s)
	}
	left := browser.Page(t, h.url+"/", 1440, 900) // stays open
	defer left.Close()
	times := map[string][]float64{}
	look := func(path, selector string) {
		p := browser.Page(t, h.url+path, 1440, 900)
		defer p.Close()
		var paint, click float64
		p.WaitFor(fmt.Sprintf("document.querySelector(%q).closest('table').tBodies[0].rows.length > 20", selector))
		p.WaitFor("performance.getEntriesByName('first-contentful-paint').length")
		p.must(p.Eval("performance.getEntriesByName('first-contentful-paint')[0].startTime", &paint))
		p.must(p.Eval(fmt.Sprintf(sortScript, selector), &click))
		times[path+" first paint"] = append(times[path+" first paint"], paint)
		times[path+" click"] = append(times[path+" click"], click)
	}
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	var heaps []float64
	for begin, sent := time.Now(), 0; time.Since(begin) < length; sent++ {
		<-tick.C
		if sent%2 == 0 {
			s := sample(t, node(sent/2), uint64(2+sent/2/nodes))
			s.At = time.Now()
			h.publish(t, s)
			continue
		}
		n := sent / 2 % jobs
		if done[n]++; done[n] <= epochs {
			e := epoch(t, id(n), done[n])
			e.At, e.Run, e.EventID = time.Now(), 1, fmt.Sprintf("%s/counted/%d", e.JobID, e.Epoch)
			e.Setting = setting(n)
			h.publish(t, e)
		} else {
			stamp := schemas.Stamp{EventID: id(n) + "/end", At: time.Now()}
			h.publish(t, &schemas.Ended{
				JobStamp: schemas.JobStamp{Stamp: stamp, JobID: id(n), Run: 1},
				Setting:  setting(n), Outcome: "finished", EpochsDone: epochs,
			})
			began[n], done[n] = began[n]+1, 1
			runJobOn(t, b, node(n), id(n), time.Now().Add(-time.Second), 1, "")
		}
		if sent%(20*perSecond) == perSecond+1 { // every 20 s
			look("/jobs?sort=id", "#jobs-table .sort")
			look("/nodes?sort=node", "#nodes-table .sort")
			_, err := chromedp.Call(left.ctx, heapprofiler.CollectGarbage, cdp.Empty{})
			left.must(err)
			usage, err := chromedp.Call(left.ctx, runtime.GetHeapUsage, cdp.Empty{})
			left.must(err)
			heaps = append(heaps, usage.UsedSize/1e6)
		}
	}
	for name, c := range times {
		slices.Sort(c)
		t.Logf("%-24s %d times, median %.0f ms, 95 %% %.0f ms, most %.0f ms", name, len(c), c[len(c)/2],
			c[len(c)*95/100], c[len(c)-1])
	}
	t.Logf("MB of memory of the open page every 20 s: %.1f", heaps)
	if len(heaps) < 2 || heaps[len(heaps)-1] > 2*heaps[1] {
		t.Error("the open page has grown")
	}
}
