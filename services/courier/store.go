package main

// storeCommands are the service that writes the tables, which is the default, and the tools for the
// tables.
type storeCommands struct {
	Serve     storeCommand          `cmd:"" default:"withargs" help:"Run the store, which writes the event log to ClickHouse (the default command)."`
	Verify    storeVerifyCommand    `cmd:"" help:"Compare the tables with the log, and repair them."`
	Rebuild   storeRebuildCommand   `cmd:"" help:"Fill all tables again from the log."`
	Reshard   storeReshardCommand   `cmd:"" help:"Copy the tables to the changed shards of a ClickHouse cluster."`
	Retention storeRetentionCommand `cmd:"" help:"Show or change how long each table keeps its rows."`
	Schema    storeSchemaCommand    `cmd:"" help:"Print the SQL of the tables, for one server or a cluster."`
}
