package main

// storeCommands are the service that fills the tables, and the tool that holds
// them against the log. Without a word it is the service.
type storeCommands struct {
	Serve  storeCommand       `cmd:"" default:"withargs" help:"Service: write the event log to ClickHouse (what courier store does by itself)."`
	Verify storeVerifyCommand `cmd:"" help:"Compare the log with the tables, and repair them."`
}
