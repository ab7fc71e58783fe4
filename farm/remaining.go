package farm

import (
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
)

// remaining wraps Memories and keeps mapped memory that nobody uses at present. An attempt to make a
// replica may map memory and then find no room for the rest; since a name can be mapped only once in
// a life, the next attempt has to get the same mapping.
type remaining struct {
	Memories
	mu   lockrank.Mutex[lockrank.Leaf]
	left map[string]*nvram.Memory // by name
}

// leave keeps a mapped memory for the next caller that maps it.
func (r *remaining) leave(name string, m *nvram.Memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = make(map[string]*nvram.Memory)
	}
	r.left[name] = m
}

// take returns the memory that was left under that name, or nil.
func (r *remaining) take(name string) *nvram.Memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.left[name]
	delete(r.left, name)
	return m
}

func (r *remaining) Map(name string, size int64) (*nvram.Memory, error) {
	if m := r.take(name); m != nil {
		return m, nil
	}
	return r.Memories.Map(name, size)
}

func (r *remaining) Remove(name string) error {
	r.take(name)
	return r.Memories.Remove(name)
}

func (r *remaining) Detach(name string) (release func() error, err error) {
	r.take(name)
	return r.Memories.Detach(name)
}
