package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/region"
)

// A Store keeps the current configuration.
type Store interface {
	// Load returns the current configuration, or nil if there never was one.
	Load() (*Configuration, error)
	// CompareAndSwap makes next current if the current configuration is still
	// the one with identifier old (0: none), and fails with ErrMoved if not.
	// Once it has returned, next survives a crash.
	CompareAndSwap(old ID, next *Configuration) error
}

var (
	// ErrMoved means that the configuration has moved on.
	ErrMoved = errors.New("cluster: the configuration has changed meanwhile")
	// ErrBadConfiguration means that a stored configuration cannot be used.
	ErrBadConfiguration = errors.New("cluster: bad configuration")
)

// formatVersion is the newest version of a stored configuration that this
// program understands.
const formatVersion = 1

type storedConfiguration struct {
	Format        int
	Configuration *Configuration
	Root          []byte // Configuration.Root
}

// A FileStore keeps the configuration of a single host in a file.
type FileStore struct {
	path string
	mu   sync.Mutex
}

// NewFileStore returns the store kept in the file at path, which need not
// exist.
func NewFileStore(path string) *FileStore { return &FileStore{path: path} }

// Load implements Store.
func (s *FileStore) Load() (*Configuration, error) {
	b, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: read the configuration: %w", err)
	}
	return decodeConfiguration(s.path, b)
}

func decodeConfiguration(path string, b []byte) (*Configuration, error) {
	var stored storedConfiguration
	if err := json.Unmarshal(b, &stored); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrBadConfiguration, path, err)
	}
	if stored.Format > formatVersion {
		return nil, fmt.Errorf("%w: %s has format %d, this program knows formats up to %d: use a newer farmsql",
			ErrBadConfiguration, path, stored.Format, formatVersion)
	}
	c := stored.Configuration
	if stored.Format < 1 || c == nil {
		return nil, fmt.Errorf("%w: %s is incomplete", ErrBadConfiguration, path)
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrBadConfiguration, path, err)
	}
	root, err := region.DecodePtr(stored.Root)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: root object: %v", ErrBadConfiguration, path, err)
	}
	c.Root = root
	return c, nil
}

// validate says what makes c no configuration.
func (c *Configuration) validate() error {
	switch {
	case c.ID == 0 || len(c.Machines) == 0 || len(c.FailureDomain) != len(c.Machines):
		return errors.New("no machines, or no failure domains of theirs")
	case c.Replicas < 1 || c.Replicas > len(c.Machines):
		return fmt.Errorf("%d replicas on %d machines", c.Replicas, len(c.Machines))
	}
	for i := 1; i < len(c.Machines); i++ {
		if c.Machines[i] <= c.Machines[i-1] {
			return fmt.Errorf("machine %d after machine %d", c.Machines[i], c.Machines[i-1])
		}
	}
	last := region.ID(0)
	for _, p := range c.Regions {
		if p.Region <= last || p.Region >= c.NextRegion {
			return fmt.Errorf("region %d after region %d, the next to be made is %d", p.Region, last, c.NextRegion)
		}
		last = p.Region
		if len(p.Backups) >= c.Replicas {
			return fmt.Errorf("region %d has %d backups, %d replicas are wanted", p.Region, len(p.Backups), c.Replicas)
		}
		for i, m := range p.Replicas() {
			if c.domain(m) < 0 || slices.Contains(p.Replicas()[:i], m) {
				return fmt.Errorf("region %d has a replica on machine %d, which is unknown or has another", p.Region, m)
			}
		}
	}
	return nil
}

// CompareAndSwap implements Store.
func (s *FileStore) CompareAndSwap(old ID, next *Configuration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	current, err := s.Load()
	if err != nil {
		return err
	}
	if current == nil && old != 0 || current != nil && current.ID != old {
		return ErrMoved
	}
	b, err := json.MarshalIndent(storedConfiguration{formatVersion, next, next.Root.Append(nil)}, "", "\t")
	if err != nil {
		return fmt.Errorf("cluster: encode the configuration: %w", err)
	}
	return replaceFile(s.path, b)
}

// replaceFile makes b the content of the file at path: a crash leaves either
// the old content or the new.
func replaceFile(path string, b []byte) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("cluster: write the configuration: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("cluster: write the configuration: %w", err)
	}
	return nil
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// A MemoryStore keeps the configuration of an instance that does not outlive
// its process. Its zero value is empty.
type MemoryStore struct {
	mu      sync.Mutex
	current *Configuration
}

// CopyTo makes the configuration kept in s that of t.
func (s *MemoryStore) CopyTo(t *MemoryStore) {
	c, _ := s.Load() // never fails
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = c
}

// Load implements Store.
func (s *MemoryStore) Load() (*Configuration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, nil
	}
	return s.current.Clone(), nil
}

// CompareAndSwap implements Store.
func (s *MemoryStore) CompareAndSwap(old ID, next *Configuration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil && old != 0 || s.current != nil && s.current.ID != old {
		return ErrMoved
	}
	s.current = next.Clone()
	return nil
}
