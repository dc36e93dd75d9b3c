package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"courier/services/local"
)

type sqlCommand struct {
	Data      string `help:"Data directory of the courier all to query." default:"courier-data" type:"path" env:"COURIER_DATA"`
	Output    string `short:"o" help:"Output format (table, csv, json); json prints an object per line." enum:"table,csv,json" default:"table"`
	File      string `short:"f" help:"Read the statement from this file." type:"existingfile"`
	Statement string `arg:"" optional:"" help:"A SELECT statement; - or none reads it from standard input."`
}

// Help returns the end of the help text.
func (c *sqlCommand) Help() string {
	return `Views, and what a row of each is:
  jobs              submitted job          node_load          node and minute
  promises          job with an SLO        node_load_hourly   node and hour
  epochs            epoch                  regressors         regressor
  advice            advice                 regressor_life     event of a regressor
  alternatives      alternative            drifts             alarm
  warnings          SLO at risk            moves              move of a running job

DESCRIBE jobs lists the columns of a view; docs/cookbook.md has questions with their SQL. The user
has read access only. A query may take a minute (ten with SETTINGS max_execution_time = 600) and
512 MiB of memory.

Examples:
  courier sql 'SELECT * FROM promises LIMIT 10'
  courier sql --output csv --file report.sql`
}

// sqlFormats are the formats of ClickHouse by value of --output.
var sqlFormats = map[string]string{
	"table": "PrettyCompactMonoBlock",
	"csv":   "CSVWithNames",
	"json":  "JSONEachRow",
}

// longestStatement is the maximum length of a statement in bytes (max_query_size of ClickHouse).
const longestStatement = 256 << 10

// Run queries the embedded ClickHouse as its read-only user.
func (c *sqlCommand) Run(w *environment) error {
	statement, err := c.statement()
	if err != nil {
		return err
	}
	e, err := sqlEndpoints(c.Data)
	if err != nil {
		return err
	}
	// The engine ends a query much earlier, but an answer may be long.
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
	defer cancel()
	err = askSQL(ctx, e, statement, sqlFormats[c.Output], w.stdout)
	var refusal *sqlError
	if errors.As(err, &refusal) && refusal.code == codeUnknownTable {
		var views strings.Builder
		if err := askSQL(ctx, e,
			"SELECT name FROM system.tables WHERE database = currentDatabase() AND engine ="+
				" 'View' ORDER BY name", "TSV", &views); err != nil {
			return refusal
		}
		return fmt.Errorf("%w\nthe views are %s", refusal,
			strings.Join(strings.Fields(views.String()), ", "))
	}
	return err
}

// statement returns the SQL: the argument, a file, or standard input.
func (c *sqlCommand) statement() (string, error) {
	text, from := []byte(c.Statement), "the statement"
	var err error
	switch {
	case c.File != "" && c.Statement != "":
		return "", errors.New("set a statement or --file, not both")
	case c.File != "":
		from = c.File
		text, err = os.ReadFile(c.File)
	case c.Statement == "-" || c.Statement == "" && piped(os.Stdin):
		from = "the standard input"
		text, err = io.ReadAll(io.LimitReader(os.Stdin, longestStatement+1))
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", from, err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", fmt.Errorf("%s is empty: want a statement such as 'SELECT * FROM jobs'", from)
	}
	if len(text) > longestStatement {
		return "", fmt.Errorf("%s is longer than %d bytes", from, longestStatement)
	}
	return string(text), nil
}

// piped reports whether a file is neither a terminal nor /dev/null.
func piped(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// sqlEndpoints returns the endpoints of a courier all that has SQL.
func sqlEndpoints(dataDir string) (local.Endpoints, error) {
	e, err := local.ReadEndpoints(dataDir)
	if errors.Is(err, local.ErrNeverRan) {
		return e, fmt.Errorf("%w: start it, or set --data to its directory", err)
	}
	if err == nil && e.ClickHouseHTTPURL == "" {
		err = errors.New("the cluster has no SQL: run courier engine install and restart it")
	}
	return e, err
}

// askSQL writes the answer to out. The engine only sends a complete answer, so that a query that
// fails midway prints nothing.
func askSQL(ctx context.Context, e local.Endpoints, statement, format string, out io.Writer) error {
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
		return newSQLError(strings.TrimSpace(string(text)))
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

// sqlError is an error of the engine.
type sqlError struct {
	code int
	text string
}

func (e *sqlError) Error() string { return e.text }

var (
	sqlCode     = regexp.MustCompile(`^Code: (\d+)\. DB::Exception: `)
	sqlTime     = regexp.MustCompile(`[mM]aximum: (\d+)(?:\.\d+)?( ms)?`)
	sqlMemory   = regexp.MustCompile(`^Query memory limit exceeded.*maximum: ([\d.]+ [KMGT]iB)`)
	sqlTrailing = regexp.MustCompile(` \(version [\d.]+\)$`)
)

// newSQLError parses an error of ClickHouse, and explains limits.
func newSQLError(text string) *sqlError {
	match := sqlCode.FindStringSubmatch(text)
	if match == nil {
		return &sqlError{text: "clickhouse: " + text}
	}
	e := &sqlError{}
	_, _ = fmt.Sscan(match[1], &e.code) // The group only matches digits.
	rest := sqlTrailing.ReplaceAllString(text[len(match[0]):], "")
	e.text = "clickhouse: " + rest
	switch e.code {
	case codeTimeout, codeTooSlow:
		if limit := sqlTime.FindStringSubmatch(rest); limit != nil {
			if limit[2] == "" {
				limit[1] += "000"
			}
			if d, err := time.ParseDuration(limit[1] + "ms"); err == nil {
				e.text = fmt.Sprintf("the query takes longer than %v, the limit"+
					" max_execution_time of read-only users:"+
					" query fewer days, or a roll-up (node_load_hourly)", d)
			}
		}
	case codeMemory:
		if limit := sqlMemory.FindStringSubmatch(rest); limit != nil {
			e.text = fmt.Sprintf("the query needs more than %s, the limit max_memory_usage of"+
				" read-only users:"+
				" query fewer days, fewer columns, or a roll-up (node_load_hourly)", limit[1])
		} else {
			e.text = "the engine has no memory left for the query (its limit is" +
				" max_server_memory_usage):" +
				" retry, or query fewer days: " + rest
		}
	case codeUnknownColumn:
		e.text += "\nlist the columns of a view with DESCRIBE and its name"
	}
	return e
}
