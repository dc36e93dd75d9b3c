package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

type credentials struct {
	Courier string `json:"courier"`
	Reader  string `json:"reader"`
}

// loadCredentials reads the passwords of a data directory, and generates them the first time. The
// file is outside of the directories that the engine can read.
func loadCredentials(dataDir string) (credentials, error) {
	c, err := readCredentials(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return newCredentials(credentialsPath(dataDir))
	}
	return c, err
}

func credentialsPath(dataDir string) string { return filepath.Join(dataDir, "credentials.json") }

func readCredentials(dataDir string) (credentials, error) {
	path := credentialsPath(dataDir)
	content, err := os.ReadFile(path)
	if err != nil {
		return credentials{}, fmt.Errorf("read the engine's passwords: %w", err)
	}
	var c credentials
	if err := json.Unmarshal(content, &c); err != nil {
		return credentials{}, fmt.Errorf("read the engine's passwords in %s: %w", path, err)
	}
	if c.Courier == "" || c.Reader == "" {
		return credentials{}, fmt.Errorf("read the engine's passwords in %s: "+
			"one is empty; remove the file to generate new ones", path)
	}
	return c, nil
}

// Writer returns the user that may read and write every database of a data directory's engine, and
// its password. It fails if no engine has run there, or if the directory belongs to another user.
func Writer(dataDir string) (user, password string, err error) {
	c, err := readCredentials(dataDir)
	return userCourier, c.Courier, err
}

func newCredentials(path string) (credentials, error) {
	c := credentials{Courier: rand.Text(), Reader: rand.Text()}
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return credentials{}, err
	}
	if err := writeFile(path, append(content, '\n')); err != nil {
		return credentials{}, fmt.Errorf("store the engine's passwords: %w", err)
	}
	return c, nil
}

// writeFile replaces a file atomically. Only this user can read it.
func writeFile(path string, content []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// orphanTimeout is the time to wait for an engine whose supervisor has died. Its host allows ten
// seconds for the stop, and a busy machine takes longer.
const orphanTimeout = 30 * time.Second

// dataLock locks a data directory. One lock marks a running supervisor: a second supervisor exits.
// The other marks an engine that is still stopping after its supervisor was killed.
type dataLock struct {
	owner  *os.File // held by this process only
	engine *os.File // inherited by the child, held until both processes have ended
}

// lockData takes both locks in the run directory, before any other file is written there.
func lockData(ctx context.Context, run string) (*dataLock, error) {
	owner, err := openLock(filepath.Join(run, "owner"))
	if err != nil {
		return nil, err
	}
	if err := tryLock(owner); err != nil {
		owner.Close()
		return nil, inUse(run, err)
	}
	engine, err := openLock(filepath.Join(run, "lock"))
	if err != nil {
		owner.Close()
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	if err := waitLock(waiting, engine); err != nil {
		owner.Close()
		engine.Close()
		return nil, inUse(run, err)
	}
	return &dataLock{owner: owner, engine: engine}, nil
}

// release releases both locks of this process. Closing the file does not unlock that of the owner while another
// command is being started, which has a copy of the file until it executes its program.
func (l *dataLock) release() error {
	return errors.Join(l.engine.Close(), unlock(l.owner), l.owner.Close())
}

func inUse(run string, err error) error {
	if errors.Is(err, errLocked) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", filepath.Dir(run), ErrInUse)
	}
	return fmt.Errorf("lock %s: %w", filepath.Dir(run), err)
}

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

func waitLock(ctx context.Context, file *os.File) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := tryLock(file)
		if !errors.Is(err, errLocked) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
