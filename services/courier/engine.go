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
	Install engineInstallCommand `cmd:"" help:"Download the ClickHouse engine's library with npm, once per user."`
	Show    engineShowCommand    `cmd:"" help:"Show which library would be used, and where it was looked for."`
}

type engineInstallCommand struct {
	From string `help:"Take this archive of the package instead of npm; its checksum must fit." type:"existingfile"`
}

func (c *engineInstallCommand) Run(w *world) error {
	l, err := engine.Install(w.ctx, engine.InstallOptions{From: c.From, Progress: w.stderr})
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, l.Path)
	return nil
}

type engineShowCommand struct {
	EngineLibrary string `help:"As in courier all." env:"COURIER_ENGINE_LIBRARY"`
}

func (c *engineShowCommand) Run(w *world) error {
	l, err := engine.FindLibrary(c.EngineLibrary, w.getenv)
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, l.Path)
	return nil
}
