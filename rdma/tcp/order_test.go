package tcp

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// What a machine writes before it sends a datagram is in order with what another reads when it has received it: the
// race detector says if it does not know that.
func TestDatagramsAreInOrder(t *testing.T) {
	f := newFabric(nil)
	one, two := f.serving(t, 1), f.serving(t, 2)
	defer closeAll(t, one, two)
	f.mu.Lock()
	f.at[1], f.at[2] = one.Address(), two.Address()
	f.mu.Unlock()
	written, got := 0, make(chan int, 1000)
	two.Datagrams(func(_ rdma.MachineID, b []byte) {
		if b[0] == 1 {
			got <- 0 // the keys are there: no connection is made, which would be in order as well
			return
		}
		got <- written
	})
	send := func(b byte, want int) {
		for begin := time.Now(); time.Since(begin) < time.Minute; {
			if err := one.Datagram(2, []byte{b}); err != nil {
				t.Fatal(err)
			}
			select {
			case v := <-got:
				if v == want {
					return
				}
			case <-time.After(10 * time.Millisecond): // it may be lost
			}
		}
		t.Errorf("no datagram %d has arrived", b)
	}
	send(1, 0)
	written = 7
	send(2, 7)
}
