package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// withStorage returns memory of a machine that has storage for all of it.
func withStorage(m *Machine, name string, size int64) *nvram.Memory {
	mem, err := m.Memory().Map(name, size)
	if err == nil {
		err = mem.Reserve(0, mem.Size())
	}
	if err != nil {
		panic(err)
	}
	return mem
}

// reserve reserves storage for n pages of a memory, mapped or not.
func reserve(t *testing.T, m *Machine, name string, n uint64) (*nvram.Memory, error) {
	t.Helper()
	_ = m.Memory().Close() // never fails
	mem, err := m.Memory().Map(name, int64(n)*pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	return mem, mem.Reserve(0, n*pageBytes)
}

// A full memory has storage for pages that have some already, and for as many pages as are given
// back. This lasts until the memory is relieved, even if the process is killed meanwhile.
func TestFullMemory(t *testing.T) {
	w := New(Options{Seed: 1})
	err := w.Run(func() {
		m := w.Machine(1)
		m.Boot()
		has := func(name string, n uint64, want bool) *nvram.Memory {
			t.Helper()
			mem, err := reserve(t, m, name, n)
			if want != (err == nil) || err != nil && !errors.Is(err, nvram.ErrNoSpace) {
				t.Errorf("%d pages of %s: %v", n, name, err)
			}
			return mem
		}
		has("a", 8, true)
		has("b", 2, true)
		m.Fill(1)
		has("a", 8, true)
		has("c", 2, false)
		has("d", 1, true)
		has("e", 1, false)
		if err := m.Memory().Remove("b"); err != nil {
			t.Fatal(err)
		}
		m.Kill()
		m.Boot()
		has("c", 2, true)
		has("e", 1, false)
		a := has("a", 8, true)
		a.Store(pageBytes, 7)
		a.Store(2*pageBytes-8, 7)
		a.Discard(8, 2*pageBytes-8) // one whole page
		if got := a.Load(pageBytes) + a.Load(2*pageBytes-8); got != 0 {
			t.Errorf("a page that was given back holds %d", got)
		}
		has("e", 1, true)
		has("a", 8, false)
		m.Relieve()
		has("a", 8, true)
		m.Fill(0)
		m.Destroy()
		m.Boot()
		has("a", 100, true)
	})
	if err != nil {
		t.Error(err)
	}
}

// A store to a page without storage, which would kill a process, is a violation.
func TestStoreWithoutStorage(t *testing.T) {
	for _, reserved := range []uint64{2 * pageBytes, pageBytes} {
		w := New(Options{Seed: 1})
		err := w.Run(func() {
			m := w.Machine(1)
			m.Boot()
			mem, err := m.Memory().Map("a", 2*pageBytes)
			if err == nil {
				err = mem.Reserve(0, reserved)
			}
			if err != nil {
				t.Fatal(err)
			}
			mem.Store(pageBytes+8, 1)
			m.Kill()
		})
		if isViolation := reserved == pageBytes; isViolation != (err != nil) || isViolation && !strings.Contains(err.Error(), "without storage") {
			t.Errorf("%d bytes are reserved: %v", reserved, err)
		}
	}
}

// An older copy of a machine's memory has its content of that time, and the present amount of room.
func TestRestore(t *testing.T) {
	w := New(Options{Seed: 1})
	err := w.Run(func() {
		m := w.Machine(1)
		m.Boot()
		withStorage(m, "a", pageBytes).Store(8, 1)
		m.Fill(0)
		m.Kill()
		older := m.Copy()
		m.Boot()
		m.Relieve()
		mem, err := reserve(t, m, "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		mem.Store(8, 2)
		for range 2 { // it can be put there again
			m.Kill()
			m.Restore(older)
			m.Boot()
			mem, err := reserve(t, m, "a", 1)
			if err != nil || mem.Load(8) != 1 {
				t.Errorf("%d, %v", mem.Load(8), err)
			}
			mem.Store(8, 3)
			if _, err := reserve(t, m, "b", 1); err != nil {
				t.Errorf("the disk is full, as it was: %v", err)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}
