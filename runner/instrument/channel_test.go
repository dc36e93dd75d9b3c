package instrument_test

import (
	"bufio"
	"encoding/json"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"courier/runner/instrument"
	"courier/runner/output"
)

// channel is a side channel whose lines are kept.
type channel struct {
	path string
	done sync.WaitGroup

	mu    sync.Mutex
	lines []channelLine
}

type channelLine struct {
	from int
	at   time.Time
	text string
}

func listen(t *testing.T) *channel {
	t.Helper()
	c := &channel{path: filepath.Join(t.TempDir(), "c")}
	l, err := net.Listen("unix", c.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for from := 1; ; from++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.done.Go(func() { c.read(from, conn) })
		}
	}()
	return c
}

func (c *channel) read(from int, conn net.Conn) {
	defer conn.Close()
	for s := bufio.NewScanner(conn); s.Scan(); {
		c.mu.Lock()
		c.lines = append(c.lines, channelLine{from, time.Now(), s.Text()})
		c.mu.Unlock()
	}
}

// all returns the lines after the process has ended.
func (c *channel) all() []channelLine {
	c.done.Wait()
	return c.lines
}

func (c *channel) epochs(p *output.Log) []output.EpochReport {
	var reports []output.EpochReport
	for _, l := range c.all() {
		reports = append(reports, p.Write([]byte(l.text+"\n"), l.at)...)
	}
	return reports
}

// measured returns the cells of what the instrumentation has sent.
func (c *channel) measured() string {
	m := instrument.NewMerge()
	begun := false
	progress, memory := "–", "–"
	for _, l := range c.all() {
		var message map[string]any
		if json.Unmarshal([]byte(l.text), &message) != nil {
			continue
		}
		m.Line(l.from, []byte(l.text), l.at)
		begun = begun || message["type"] == "loop"
		if message["type"] == "progress" || message["unit"] == "round" {
			progress = "yes"
		}
		if message["rss_peak"] != nil {
			memory = "yes"
		}
	}
	if cells := cellsOf(m.Take(time.Now(), false, true), "measured", progress, memory); cells != "" || !begun {
		return cells
	}
	return "– | of the start-up | – | – | – | –"
}
