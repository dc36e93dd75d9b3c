package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"courier/collector"
	"courier/gateway"
	"courier/services"
)

type collectorCommand struct {
	serviceFlags
	nodeFlags
	Interval          time.Duration `help:"Time between two samples." default:"2s" env:"COURIER_INTERVAL"`
	SamplesPerMessage int           `help:"Number of samples per message, 1 to 100. A message is sent after its last sample was taken." default:"1" env:"COURIER_SAMPLES_PER_MESSAGE"`
}

func (c *collectorCommand) Run(w *environment) error {
	growSlowly(w)
	collector.ReleaseMemory() // Parsing the other commands needed this memory.
	return c.serve(w, "collector", func(r *serviceEnvironment) (builtService, error) {
		node, err := nodeName(c.Node)
		if err != nil {
			return builtService{}, err
		}
		s, err := collector.New(r.bus, collector.Options{
			Node: node, Interval: c.Interval, SamplesPerMessage: c.SamplesPerMessage, Dedicated: true,
			SpoolDir: c.SpoolDir,
		}, r.log, r.reg)
		if err != nil {
			return builtService{}, err
		}
		return builtService{part: services.Part{Name: "collector", Run: s.Run}}, nil
	})
}

// storeMemory is the soft memory limit of a store in bytes. It only matters when all streams catch
// up at the same time.
const storeMemory = 240 << 20

type storeCommand struct {
	serviceFlags
	ClickHouseURL string `name:"clickhouse-url" help:"URL of ClickHouse, such as clickhouse://user:password@host:9000/courier." required:"" env:"COURIER_CLICKHOUSE_URL"`
	clickHouseFlags
	clusterFlags
	BatchMessages int           `help:"Maximum number of events in a batch." default:"${batch_messages}" env:"COURIER_BATCH_MESSAGES"`
	BatchAge      time.Duration `help:"Maximum time that an event waits for its batch." default:"1s" env:"COURIER_BATCH_AGE"`
}

func (c *storeCommand) Run(w *environment) error {
	if w.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(storeMemory)
	}
	return c.serve(w, "store", func(r *serviceEnvironment) (builtService, error) {
		o := c.clickHouseFlags.options(c.ClickHouseURL)
		o.MaxMessages, o.MaxAge = c.BatchMessages, c.BatchAge
		ready := make(chan struct{})
		part := services.Part{Name: "store", Run: func(ctx context.Context) error {
			tables, err := c.clusterFlags.open(ctx, r.bus, o, r.log, r.reg)
			if err == nil {
				defer func() { _ = tables.Close() }() // Nothing is written any more.
				err = tables.Migrate(ctx)
			}
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			close(ready)
			return tables.Run(ctx)
		}}
		isReady := func() error {
			select {
			case <-ready:
				return nil
			default:
				return errors.New("store: the tables are not ready yet")
			}
		}
		return builtService{part: part, ready: isReady}, nil
	})
}

type gatewayCommand struct {
	serviceFlags
	Tokens        string   `help:"File of tokens, one per line: SHA-256 in hex, user, and role (reader, submitter, admin). Changes apply without a restart. Without the file every client has all rights." env:"COURIER_TOKENS"`
	RateLimit     float64  `name:"rate-limit" help:"Requests per second of a user, or of an address without a token, with bursts of twice as many; 0: no limit." default:"200" env:"COURIER_RATE_LIMIT"`
	TLSCert       string   `name:"tls-cert" help:"File with the certificate (PEM) of the gateway. Serves HTTPS." env:"COURIER_TLS_CERT"`
	TLSKey        string   `name:"tls-key" help:"File with the key of --tls-cert." env:"COURIER_TLS_KEY"`
	ClickHouseURL string   `name:"clickhouse-http-url" help:"HTTP address of ClickHouse to show on the web page." env:"COURIER_CLICKHOUSE_HTTP_URL"`
	AllowedHosts  []string `name:"allowed-host" sep:"," help:"Host names of the gateway besides localhost and IP addresses; * allows any. Protects against DNS rebinding; not needed with --tokens or TLS." env:"COURIER_ALLOWED_HOST"`
	gateway.Outward
}

func (c *gatewayCommand) Run(w *environment) error {
	c.HTTPAddress = cmp.Or(c.HTTPAddress, "127.0.0.1:8080")
	o := gateway.Options{
		Outward: c.Outward, Version: buildVersion(), ClickHouseURL: func() string { return c.ClickHouseURL },
		Rate: c.RateLimit, AllowedHosts: c.AllowedHosts,
	}
	if c.RateLimit < 0 {
		return usagef("--rate-limit %g: want 0 or more", c.RateLimit)
	}
	var err error
	if c.Tokens != "" {
		if o.Tokens, err = gateway.ReadTokens(c.Tokens); err != nil {
			return err
		}
	}
	if c.tls, err = serverTLS(c.TLSCert, c.TLSKey); err != nil {
		return err
	}
	return c.serve(w, "gateway", func(r *serviceEnvironment) (builtService, error) {
		o.Gatherer = r.reg
		g, err := gateway.New(r.bus, o, r.log, r.reg)
		if err != nil {
			return builtService{}, err
		}
		return builtService{
			part:    services.Part{Name: "gateway", Run: g.Run},
			handler: g.Handler(),
		}, nil
	})
}

// serverTLS returns the configuration of a server with a certificate; nil without one.
func serverTLS(cert, key string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %q with --tls-key %q: %w", cert, key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
