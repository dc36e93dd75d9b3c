//go:build linux && amd64 && !noengine

package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"courier/store/engine"
)

// BenchmarkStart measures the time from the start with an existing directory to the first answer,
// and the time to stop.
func BenchmarkStart(b *testing.B) {
	o := withEngine(b)
	if err := run(b, o).stop(); err != nil {
		b.Fatal(err)
	}
	var starting, stopping time.Duration
	n := 0
	for b.Loop() {
		began := time.Now()
		e := run(b, o)
		e.ready()
		ready := time.Now()
		if err := e.stop(); err != nil {
			b.Fatal(err)
		}
		starting, stopping, n = starting+ready.Sub(began), stopping+time.Since(ready), n+1
	}
	b.ReportMetric(starting.Seconds()/float64(n), "start_seconds")
	b.ReportMetric(stopping.Seconds()/float64(n), "stop_seconds")
}

// sampleTable is a table like that of node samples.
const sampleTable = `CREATE TABLE %s (at DateTime64(3, 'UTC'), node LowCardinality(String), a Float64, b Float64, c Float64, d Float64, e UInt64, f UInt64)
ENGINE = MergeTree ORDER BY (node, at)`

// jsonRows encodes n rows as JSONEachRow, rowBinary as RowBinary.
func jsonRows(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(
			&b,
			`{"at":%d,"node":"node-%d","a":%g,"b":0.5,"c":0.25,"d":0.125,"e":%d,"f":7}`+"\n",
			1_700_000_000+i,
			i%50,
			float64(i)/7,
			i,
		)
	}
	return b.Bytes()
}

func rowBinary(n int) []byte {
	var b []byte
	for i := range n {
		node := "node-" + strconv.Itoa(i%50)
		b = binary.LittleEndian.AppendUint64(b, uint64(1_700_000_000+i)*1000)
		b = append(append(b, byte(len(node))), node...)
		for _, f := range []float64{float64(i) / 7, 0.5, 0.25, 0.125} {
			b, _ = binary.Append(b, binary.LittleEndian, f) // a fixed-size value has no error
		}
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(i)), 7)
	}
	return b
}

// BenchmarkInsert measures one writer over HTTP, by format and batch size.
func BenchmarkInsert(b *testing.B) {
	p := run(b, withEngine(b)).ready()
	for format, rows := range map[string]func(int) []byte{
		"JSONEachRow": jsonRows,
		"RowBinary":   rowBinary,
	} {
		for _, n := range []int{100, 1_000, 10_000, 50_000} {
			b.Run(fmt.Sprintf("format=%s/rows=%d", format, n), func(b *testing.B) {
				table := fmt.Sprintf("samples_%s_%d", format, n)
				must(b, p, "DROP TABLE IF EXISTS "+table)
				must(b, p, fmt.Sprintf(sampleTable, table))
				insert := inserter(b, p, "INSERT INTO "+table+" FORMAT "+format, rows(n))
				b.ReportAllocs()
				for b.Loop() {
					insert()
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// inserter returns a function that posts the same body on one connection.
func inserter(b *testing.B, p engine.Connection, statement string, body []byte) func() {
	b.Helper()
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	keeping := &http.Client{Transport: transport, Timeout: time.Minute}
	address := p.HTTPURL + "/?" + url.Values{
		"query":    {statement},
		"database": {p.Database},
	}.Encode()
	return func() {
		request, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		request.SetBasicAuth(p.User, p.Password)
		response, err := keeping.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			b.Fatal(response.Status)
		}
	}
}

// BenchmarkQuery measures an empty query and one that aggregates a million rows.
func BenchmarkQuery(b *testing.B) {
	p := run(b, withEngine(b)).ready()
	must(b, p, fmt.Sprintf(sampleTable, "samples"))
	must(
		b,
		p,
		"INSERT INTO samples SELECT toDateTime64(number, 3, 'UTC'), concat('node-', toString(number % 50)), "+
			"number / 7, 0.5, 0.25, 0.125, number, 7 FROM numbers(1000000)",
	)
	must(b, p, "OPTIMIZE TABLE samples FINAL")
	for _, c := range []struct{ name, statement string }{
		{"one", "SELECT 1"},
		{
			"aggregate/rows=1000000",
			"SELECT node, avg(a), max(e), quantile(0.95)(a) FROM samples GROUP BY node FORMAT Null",
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			query := inserter(b, p, c.statement, nil)
			b.ReportAllocs()
			for b.Loop() {
				query()
			}
		})
	}
}
