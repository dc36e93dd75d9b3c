package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type sqlCommand struct {
	Data      string `help:"Data directory of the courier all that is asked." default:"courier-data" type:"path" env:"COURIER_DATA"`
	Output    string `short:"o" help:"table, csv or json." enum:"table,csv,json" default:"table"`
	Statement string `arg:"" help:"One SELECT; views: jobs, epochs, advice, alternatives, promises, node_load, regressor_life."`
}

// formats of ClickHouse by what a person calls them.
var sqlFormats = map[string]string{"table": "PrettyCompactMonoBlock", "csv": "CSVWithNames", "json": "JSONEachRow"}

// Run asks the embedded ClickHouse as its reader, who can change nothing.
func (c *sqlCommand) Run(w *world) error {
	name := filepath.Join(c.Data, "run", "endpoints.json")
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no courier all has run in %s: start it, or name its directory with --data", c.Data)
	}
	if err != nil {
		return err
	}
	var e Endpoints
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if e.ClickHouseHTTPURL == "" {
		return errors.New("SQL is off there: courier engine install turns it on")
	}
	query := url.Values{"database": {e.ClickHouseDatabase}, "default_format": {sqlFormats[c.Output]}, "output_format_pretty_color": {"0"}, "output_format_pretty_row_numbers": {"0"}}
	r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, e.ClickHouseHTTPURL+"/?"+query.Encode(), strings.NewReader(c.Statement))
	if err != nil {
		return err
	}
	r.SetBasicAuth(e.ClickHouseUser, e.ClickHousePassword)
	reply, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		return fmt.Errorf("%w; is courier all still running?", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 4<<10)) // what there is of the reason
		return fmt.Errorf("clickhouse: %s", strings.TrimSpace(string(text)))
	}
	_, err = io.Copy(w.stdout, reply.Body)
	return err
}
