package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"courier/services/local"
	"courier/store/engine"
	"courier/store/engine/host"
)

type sqlCommand struct {
	Data      string `help:"Data directory of the courier all to query." default:"courier-data" type:"path" env:"COURIER_DATA"`
	Output    string `short:"o" help:"Output format (table, csv, json); json prints an object per line." enum:"table,csv,json" default:"table"`
	Statement string `arg:"" optional:"" help:"A SELECT statement; - or none reads it from standard input."`
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
	return e.Query(ctx, statement, sqlFormats[c.Output], w.stdout)
}

// statement returns the SQL: the argument or the standard input.
func (c *sqlCommand) statement() (string, error) {
	text, from := []byte(c.Statement), "the statement"
	var err error
	if c.Statement == "-" || c.Statement == "" && piped(os.Stdin) {
		from = "the standard input"
		text, err = io.ReadAll(io.LimitReader(os.Stdin, longestStatement+1))
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", from, err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", usagef("%s is empty: want a statement such as 'SELECT * FROM jobs'", from)
	}
	if len(text) > longestStatement {
		return "", usagef("%s is longer than %d bytes", from, longestStatement)
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

// engineHostCommand is the hidden sub-command in which the engine's library runs.
const engineHostCommand = "engine-host"

func engineHost(args []string) int { return host.HostMain(args) }

type engineCommand struct {
	Action        string `arg:"" help:"install: download the engine with npm, once per user; show: print which library is used, or where it was searched." enum:"install,show" default:"show"`
	From          string `help:"Install this archive of the package instead of using npm; its checksum must match." type:"existingfile"`
	EngineLibrary string `help:"File of the ClickHouse engine, libchdb.so, to show." env:"COURIER_ENGINE_LIBRARY"`
}

func (c *engineCommand) Run(w *environment) (err error) {
	var library string
	switch c.Action {
	case "install":
		library, err = engine.Install(w.ctx, engine.InstallOptions{From: c.From, Progress: w.stderr})
	default:
		library, err = engine.FindLibrary(c.EngineLibrary)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, library)
	return nil
}
