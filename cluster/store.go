package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/farmsql/farmsql/nvram"
	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// A Store keeps the current configuration.
type Store interface {
	// Load returns the current configuration, or nil if there never was one.
	Load() (*Configuration, error)
	// CompareAndSwap makes next current if the current configuration still has revision old (0:
	// there is none), and fails with ErrMoved otherwise. When it returns nil, next survives a
	// crash. After any other error, next may or may not have become current.
	CompareAndSwap(old uint64, next *Configuration) error
	// Close releases the store's resources.
	Close() error
}

var (
	// ErrMoved means that the stored configuration has changed.
	ErrMoved = errors.New("cluster: the configuration has changed meanwhile")
	// ErrBadConfiguration means that a stored configuration cannot be used.
	ErrBadConfiguration = errors.New("cluster: bad configuration")
	// ErrNewer means that a stored configuration has a format that this program does not know. A
	// member stores a format only when all members speak a protocol version that knows it.
	ErrNewer = fmt.Errorf("%w: of a newer format", ErrBadConfiguration)
)

// A FileStore keeps the configuration of a single host in a file. A process that changes it locks the
// file's folder meanwhile.
type FileStore struct {
	path string
}

// NewFileStore returns the store of the file at path. The file need not exist.
func NewFileStore(path string) *FileStore { return &FileStore{path: path} }

// Load implements Store.
//
// A replaced file becomes the spare for the next replacement. So a reader that has it open
// during two replacements may read parts of both contents. Load therefore opens and reads the
// file until it gets the same content twice.
func (s *FileStore) Load() (*Configuration, error) {
	var before []byte
	for {
		b, err := os.ReadFile(s.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("cluster: read the configuration: %w", err)
		case bytes.Equal(b, before):
			return Decode(s.path, b)
		}
		before = b
	}
}

// CompareAndSwap implements Store.
func (s *FileStore) CompareAndSwap(old uint64, next *Configuration) error {
	unlock, err := lockFolder(filepath.Dir(s.path))
	if err != nil {
		return fmt.Errorf("cluster: lock the folder of the configuration: %w", err)
	}
	defer unlock()
	current, err := s.Load()
	if err != nil {
		return err
	}
	if current.revision() != old {
		return ErrMoved
	}
	var b bytes.Buffer
	if err := json.Indent(&b, next.Encode(), "", "\t"); err != nil {
		return fmt.Errorf("cluster: encode the configuration: %w", err)
	}
	if err := nvram.ReplaceFile(s.path, ".new", b.Bytes()); err != nil {
		return fmt.Errorf("cluster: write the configuration: %w", err)
	}
	return nil
}

// Close implements Store.
func (s *FileStore) Close() error { return nil }

// lockFolder locks a folder. It waits until no other process or goroutine holds the lock. Killing a
// process frees its lock.
func lockFolder(path string) (unlock func(), err error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { d.Close() }, nil
		}
		if !errors.Is(err, unix.EINTR) {
			d.Close()
			return nil, err
		}
	}
}

// A MemoryStore keeps the configuration of an instance that does not outlive
// its process. Its zero value is empty.
type MemoryStore struct {
	mu      lockrank.Mutex[lockrank.Leaf]
	current *Configuration
}

// CopyTo copies the configuration of s to t.
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
func (s *MemoryStore) CompareAndSwap(old uint64, next *Configuration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.revision() != old && !sabotage.CompareAndSwap.Skipped() {
		return ErrMoved
	}
	s.current = next.Clone()
	return nil
}

// Close implements Store.
func (s *MemoryStore) Close() error { return nil }
