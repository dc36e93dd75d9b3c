package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Query sends a statement to the engine and writes the answer in a format of ClickHouse. The engine
// only sends a complete answer, so that a query that fails midway writes nothing. An error about an
// unknown view lists the views.
func (e Endpoints) Query(ctx context.Context, statement, format string, out io.Writer) error {
	err := e.send(ctx, statement, format, out)
	var refusal *queryError
	if errors.As(err, &refusal) && refusal.code == codeUnknownTable {
		var views strings.Builder
		const list = "SELECT name FROM system.tables" +
			" WHERE database = currentDatabase() AND engine = 'View' ORDER BY name"
		if err := e.send(ctx, list, "TSV", &views); err != nil {
			return refusal
		}
		return fmt.Errorf("%w\nthe views are %s", refusal,
			strings.Join(strings.Fields(views.String()), ", "))
	}
	return err
}

func (e Endpoints) send(ctx context.Context, statement, format string, out io.Writer) error {
	query := url.Values{
		"database":                         {e.ClickHouseDatabase},
		"default_format":                   {format},
		"wait_end_of_query":                {"1"},
		"output_format_pretty_color":       {"0"},
		"output_format_pretty_row_numbers": {"0"},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		e.ClickHouseHTTPURL+"/?"+query.Encode(), strings.NewReader(statement))
	if err != nil {
		return err
	}
	r.SetBasicAuth(e.ClickHouseUser, e.ClickHousePassword)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("%w; is courier all still running?", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 4<<10)) // Part of the reason is enough.
		return newQueryError(strings.TrimSpace(string(text)))
	}
	if _, err := io.Copy(out, reply.Body); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// Error codes of ClickHouse that get an explanation.
const (
	codeUnknownColumn = 47
	codeUnknownTable  = 60
	codeTimeout       = 159
	codeTooSlow       = 160
	codeMemory        = 241
)

const fewerRows = "query fewer days, fewer columns, or a roll-up (node_load_hourly)"

// hints suggest what to do about an error of ClickHouse, by its code.
var hints = map[int]string{
	codeUnknownColumn: "list the columns of a view with DESCRIBE and its name",
	codeTimeout:       "max_execution_time limits read-only users: " + fewerRows,
	codeTooSlow:       "max_execution_time limits read-only users: " + fewerRows,
	codeMemory:        "max_memory_usage limits read-only users, and all queries share memory: " + fewerRows,
}

type queryError struct {
	code int
	text string
}

func (e *queryError) Error() string { return e.text }

var (
	sqlCode     = regexp.MustCompile(`^Code: (\d+)\. DB::Exception: `)
	sqlTrailing = regexp.MustCompile(` \(version [\d.]+\)$`)
)

// newQueryError parses an error of ClickHouse, and adds a hint.
func newQueryError(text string) *queryError {
	match := sqlCode.FindStringSubmatch(text)
	if match == nil {
		return &queryError{text: "clickhouse: " + text}
	}
	e := &queryError{}
	_, _ = fmt.Sscan(match[1], &e.code) // The group only matches digits.
	e.text = "clickhouse: " + sqlTrailing.ReplaceAllString(text[len(match[0]):], "")
	if hint := hints[e.code]; hint != "" {
		e.text += "\n" + hint
	}
	return e
}
