package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// storeCommands are the service that fills the tables, and the tools that look
// after them. Without a word it is the service.
type storeCommands struct {
	Serve   storeCommand        `cmd:"" default:"withargs" help:"Service: write the event log to ClickHouse (what courier store does by itself)."`
	Verify  storeVerifyCommand  `cmd:"" help:"Compare the log with the tables, and repair them."`
	Rebuild storeRebuildCommand `cmd:"" help:"Make all tables anew from the log."`
	Schema  storeSchemaCommand  `cmd:"" help:"Print the SQL of the tables, for one server or a cluster."`
}

// printHelp prints the help of a command, and of the one that it is without a
// further word.
func printHelp(o kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	selected := c.Selected()
	if selected == nil || selected.DefaultCmd == nil {
		return nil
	}
	words := append(strings.Fields(command(c)), selected.DefaultCmd.Name)
	without, err := kong.Trace(c.Kong, words)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "\nWithout a command it is courier %s:\n\n", strings.Join(words, " "))
	return kong.DefaultHelpPrinter(o, without)
}
