package main

import (
	"cmp"
	"context"
	"errors"

	"courier/bus"
	"courier/services"
	"courier/services/doctor"
	"courier/spool"
	"courier/store/engine"
)

type doctorCommand struct {
	natsFlags
	outputFlags
	nodeFlags
	EngineLibrary string `help:"File of the ClickHouse engine, libchdb.so." env:"COURIER_ENGINE_LIBRARY"`
}

// Run returns notMet if a check failed.
func (c *doctorCommand) Run(w *environment) error {
	var connection *bus.Bus
	e := doctor.Examine(w.ctx, doctor.Options{
		Connect: func(context.Context) (*bus.Bus, error) {
			var err error
			connection, err = c.connect(w)
			return connection, err
		},
		Version:    buildVersion(),
		SpoolDir:   cmp.Or(c.SpoolDir, spool.DefaultDir()),
		FreeBytes:  services.FreeBytes,
		FindEngine: func() (string, error) { return engine.FindLibrary(c.EngineLibrary) },
	})
	if connection != nil {
		closeBus(connection)
	}
	err := c.print(w, e, e.WriteText)
	if err == nil && e.Failed() {
		return notMet{errors.New("a check failed")}
	}
	return err
}
