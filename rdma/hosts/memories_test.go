package hosts

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDeregisterWaits: code that takes memory away waits for a copy in progress, of every copier that has not ended.
func TestDeregisterWaits(t *testing.T) {
	memories := NewMemories()
	copiers := []*Copier{memories.Copier(), memories.Copier()}
	memories.Copier().End()
	if n := len(memories.mu.copiers); n != len(copiers) {
		t.Errorf("%d copiers are waited for, want %d", n, len(copiers))
	}
	for _, c := range copiers {
		c.mu.Lock() // a copy is in progress
		returned := make(chan struct{})
		go func() {
			memories.Deregister(5)
			close(returned)
		}()
		select {
		case <-returned:
			t.Error("Deregister has not waited")
		case <-time.After(10 * time.Millisecond): // it cannot be seen to wait
		}
		c.mu.Unlock()
		<-returned
	}
}

// TestCopier: operations reach registered memory only, within its bounds, and none after End.
func TestCopier(t *testing.T) {
	memories, memory := NewMemories(), nvram.NewMemory(4096)
	c := memories.Copier()
	word := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	if err := c.Write(5, 0, word); !errors.Is(err, rdma.ErrKey) {
		t.Errorf("before Register: %v", err)
	}
	if err := memories.Register(5, memory); err != nil {
		t.Fatal(err)
	}
	if err := memories.Register(5, memory); !errors.Is(err, rdma.ErrKeyTaken) {
		t.Errorf("twice: %v", err)
	}
	got := make([]byte, 8)
	if err := errors.Join(c.Check(5, 4088, 8), c.Write(5, 4088, word), c.Read(5, 4088, got)); err != nil || string(got) != string(word) {
		t.Errorf("%v, read %x", err, got)
	}
	for _, off := range []uint64{4096, 1 << 63, 4} {
		if err := c.Read(5, off, got); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("at %#x: %v", off, err)
		}
	}
	memories.Deregister(5)
	if err := c.Read(5, 0, got); !errors.Is(err, rdma.ErrKey) {
		t.Errorf("after Deregister: %v", err)
	}
	c.End()
	if err := c.Read(5, 0, got); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("after End: %v", err)
	}
	memories.Close()
	if err := memories.Register(6, memory); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
