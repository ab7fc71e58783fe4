package call

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// Who neither answers nor says that it is at work is told, again and again, and not once
// it answers; a handler that takes long is no silence, nor is a machine that was called
// whichever life it has.
func TestSilenceIsTold(t *testing.T) {
	a, b := two(t)
	var told atomic.Int32
	a.Watch(100*time.Millisecond, func(p Peer) {
		if p != b.Self() {
			t.Errorf("told of %v", p)
		}
		told.Add(1)
	})
	release := make(chan bool)
	b.Handle(kind, func(Peer, []byte) ([]byte, error) { <-release; return nil, nil })
	done := make(chan error)
	try := func(ctx context.Context, to Peer, kind uint8) {
		_, err := a.Call(ctx, to, kind, nil)
		done <- err
	}
	go try(patient(t), b.Self(), kind)
	time.Sleep(500 * time.Millisecond)
	if n := told.Load(); n > 1 { // of five, on a computer that stood still
		t.Errorf("a handler that runs: told %d times", n)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.nic.Datagrams(nil) // it is there, and deaf
	before := told.Load()
	ctx, cancel := context.WithCancel(t.Context())
	go try(ctx, b.Self(), kind)
	for deadline := time.Now().Add(20 * time.Second); told.Load() < before+2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody is told of a silent machine")
		}
	}
	cancel()
	<-done
	before = told.Load()
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	go try(ctx, Peer{2, AnyLife}, kind)
	<-done
	if n := told.Load() - before; n > 0 {
		t.Errorf("a machine that may not be there is told of %d times", n)
	}
}
