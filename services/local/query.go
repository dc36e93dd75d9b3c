package local

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Query sends a statement to the engine and writes the answer in a format of ClickHouse. The engine
// only sends a complete answer, so that a query that fails midway writes nothing.
func (e Endpoints) Query(ctx context.Context, statement, format string, out io.Writer) error {
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
		return fmt.Errorf("clickhouse: %s", needless.ReplaceAllString(strings.TrimSpace(string(text)), ""))
	}
	if _, err := io.Copy(out, reply.Body); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// needless matches what the reader of an error of ClickHouse does not need.
var needless = regexp.MustCompile(`^Code: \d+\. DB::Exception: | \(version [\d.]+\)$`)
