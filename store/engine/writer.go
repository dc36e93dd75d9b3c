package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Writer returns the user that may read and write every database of the engine of
// a data directory, and its password, for a tool of the directory's owner. The
// error says that no engine has run there, or that the owner is another.
func Writer(dataDir string) (user, password string, err error) {
	content, err := os.ReadFile(filepath.Join(dataDir, "credentials.json"))
	if err != nil {
		return "", "", fmt.Errorf("read the engine's passwords: %w", err)
	}
	var c credentials
	if err := json.Unmarshal(content, &c); err != nil {
		return "", "", fmt.Errorf("read the engine's passwords in %s: %w", dataDir, err)
	}
	return userCourier, c.Courier, nil
}
