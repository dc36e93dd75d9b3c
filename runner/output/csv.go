package output

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// csvLog reads a table that a CSV logger writes to a file. Its head has a column "epoch". An epoch
// may have several rows, each with a part of the metrics. It ends with the first row that has a
// metric on held-out data, or else with the first row of the next epoch.
type csvLog struct {
	fileMetrics
	columns     []name // nil: no head was read
	labels      []string
	epochColumn int
	separator   rune
	current     *csvEpoch
	last        uint32 // last reported epoch, once isSeen is set
	isSeen      bool
}

// csvEpoch is an epoch that has not ended.
type csvEpoch struct {
	*block
	number uint32
	at     time.Time // of its last row
}

// Line implements lineFormat.
func (c *csvLog) Line(line []byte, at time.Time) []EpochReport {
	if c.readHead(string(line)) || c.columns == nil {
		return nil
	}
	fields := c.split(string(line), c.separator)
	if len(fields) <= c.epochColumn {
		return nil
	}
	value, err := strconv.ParseFloat(fields[c.epochColumn], 64)
	if err != nil || value < 0 || value > schemas.MaxEpochs {
		return nil
	}
	number := uint32(value) // a fraction is a part of the next epoch
	if c.isSeen && number <= c.last {
		return nil
	}

	var reports []EpochReport
	if c.current != nil && c.current.number != number {
		reports = c.end()
	}
	if c.current == nil {
		c.current = &csvEpoch{block: newBlock(), number: number}
	}
	c.current.at = at
	if c.readRow(fields) {
		reports = append(reports, c.end()...)
	}
	return reports
}

// readHead reads the head of a table, and reports whether the line is one.
func (c *csvLog) readHead(line string) bool {
	for _, separator := range []rune{',', '\t', ';'} {
		fields := c.split(strings.ToLower(line), separator)
		i := slices.Index(fields, "epoch")
		if i < 0 || len(fields) < 2 || len(fields) > maxColumns {
			continue
		}
		c.columns, c.epochColumn, c.separator = make([]name, len(fields)), i, separator
		c.labels = c.labels[:0]
		for k, field := range fields {
			c.columns[k] = nameOf([]byte(field), nil, c.own)
			c.labels = append(c.labels, field)
		}
		return true
	}
	return false
}

// split returns the fields of a row, or nil if it is not a row.
func (c *csvLog) split(line string, separator rune) []string {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, r.TrimLeadingSpace, r.FieldsPerRecord = separator, true, -1
	fields, err := r.Read()
	if err != nil {
		return nil
	}
	return fields
}

// readRow takes the metrics of a row, and reports whether one is of held-out data.
func (c *csvLog) readRow(fields []string) (isHeldOut bool) {
	for i := range min(len(fields), len(c.columns)) {
		v, err := strconv.ParseFloat(strings.TrimSpace(fields[i]), 64)
		if err != nil || i == c.epochColumn {
			continue
		}
		isHeldOut = c.add(c.current.block, c.columns[i], c.labels[i], v) || isHeldOut
	}
	return isHeldOut
}

// end returns the epoch that the end of the table completes, if any.
func (c *csvLog) end() []EpochReport {
	e := c.current
	if e == nil {
		return nil
	}
	c.current, c.last, c.isSeen = nil, e.number, true
	return []EpochReport{c.report(e.number, e.block, e.at)}
}

// NewLog returns a parser of a file that a logger writes: a table with a head, or JSON lines.
func NewLog(kinds MetricKinds) *Parser {
	return newParser(func() []lineFormat {
		return []lineFormat{
			newJSONLines(newFileMetrics(kinds), false),
			&csvLog{fileMetrics: newFileMetrics(kinds)},
		}
	})
}
