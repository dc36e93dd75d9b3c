package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Endpoints are the addresses of an instance, stored in DIR/run/endpoints.json.
type Endpoints struct {
	NATSURL             string `json:"nats_url"`
	HTTPURL             string `json:"http_url"`
	ClickHouseHTTPURL   string `json:"clickhouse_http_url,omitempty"`
	ClickHouseNativeURL string `json:"clickhouse_native_url,omitempty"`
	ClickHouseDatabase  string `json:"clickhouse_database,omitempty"`
	ClickHouseUser      string `json:"clickhouse_user,omitempty"`     // read-only
	ClickHousePassword  string `json:"clickhouse_password,omitempty"` // of that user; only the owner can read the file
}

// ErrNeverRan is the error of ReadEndpoints when no instance has run in the directory.
var ErrNeverRan = errors.New("no courier all has run in this data directory")

// ReadEndpoints reads the addresses of the last instance in a data directory, running or not.
func ReadEndpoints(dataDir string) (e Endpoints, err error) {
	data, err := os.ReadFile(endpointsFile(dataDir))
	if errors.Is(err, os.ErrNotExist) {
		return e, fmt.Errorf("%w: %s", ErrNeverRan, dataDir)
	}
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("read %s: %w", endpointsFile(dataDir), err)
	}
	return e, nil
}

func endpointsFile(dataDir string) string {
	return filepath.Join(dataDir, "run", "endpoints.json")
}

// Endpoints returns the current addresses. Those of ClickHouse are empty until SQL is ready.
func (i *Instance) Endpoints() Endpoints {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.endpoints
}

// changeEndpoints changes the endpoints, and replaces their file atomically.
func (i *Instance) changeEndpoints(change func(*Endpoints)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.endpoints)

	name := endpointsFile(i.o.Data)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("create %s: %w", filepath.Dir(name), err)
	}
	data, err := json.MarshalIndent(i.endpoints, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(name+".new", name)
}
