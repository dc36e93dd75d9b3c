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
	Install engineInstallCommand `cmd:"" help:"Download the ClickHouse engine with npm, once per user."`
	Show    engineShowCommand    `cmd:"" help:"Show which engine library is used, and where it was searched."`
}

type engineInstallCommand struct {
	From string `help:"Install this archive of the package instead of using npm; its checksum must match." type:"existingfile"`
}

func (c *engineInstallCommand) Run(w *environment) error {
	l, err := engine.Install(w.ctx, engine.InstallOptions{From: c.From, Progress: w.stderr})
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, l.Path)
	return nil
}

type engineShowCommand struct {
	EngineLibrary string `help:"File of the ClickHouse engine, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
}

func (c *engineShowCommand) Run(w *environment) error {
	l, err := engine.FindLibrary(c.EngineLibrary, w.getenv)
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, l.Path)
	return nil
}
