package main

// storeCommands are the service that writes the tables, which is the default, and the tools for the
// tables.
type storeCommands struct {
	Serve     storeCommand          `cmd:"" default:"withargs" help:"Run the store, which writes the event log to ClickHouse (the default command)."`
	Verify    storeVerifyCommand    `cmd:"" help:"Compare the tables with the log."`
	Rebuild   storeRebuildCommand   `cmd:"" help:"Fill all tables again from the log."`
	Retention storeRetentionCommand `cmd:"" help:"Show or change how long each table keeps its rows."`
	Schema    storeSchemaCommand    `cmd:"" help:"Print the SQL of the tables, for one server or a cluster."`
}
