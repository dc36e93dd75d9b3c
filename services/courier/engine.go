package main

import (
	"fmt"

	"courier/store/engine"
	"courier/store/engine/host"
)

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
