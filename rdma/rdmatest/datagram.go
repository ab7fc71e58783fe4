package rdmatest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

// A mailbox receives a machine's datagrams and remembers them.
type mailbox struct {
	mu  sync.Mutex
	got map[string]int // "from: bytes", and how often it arrived
}

func (m *machine) listen() *mailbox {
	box := &mailbox{got: map[string]int{}}
	m.nic.Datagrams(func(from rdma.MachineID, b []byte) {
		box.mu.Lock()
		defer box.mu.Unlock()
		box.got[letter(from, b)]++
	})
	return box
}

// letter returns the key of a datagram in mailbox.got.
func letter(from rdma.MachineID, b []byte) string { return fmt.Sprintf("%d: %s", from, b) }

func (box *mailbox) has(from rdma.MachineID, b []byte) bool {
	box.mu.Lock()
	defer box.mu.Unlock()
	return box.got[letter(from, b)] > 0
}

// count returns how many different datagrams have arrived.
func (box *mailbox) count() int {
	box.mu.Lock()
	defer box.mu.Unlock()
	return len(box.got)
}

// others returns how many different datagrams have arrived besides those sent.
func (box *mailbox) others(from rdma.MachineID, sent ...[]byte) int {
	box.mu.Lock()
	defer box.mu.Unlock()
	n := len(box.got)
	for _, b := range sent {
		if box.got[letter(from, b)] > 0 {
			n--
		}
	}
	return n
}

// send sends until the datagram has arrived: any single one may be lost.
func (m *machine) send(t *testing.T, to rdma.MachineID, box *mailbox, b []byte) {
	t.Helper()
	eventually(t, fmt.Sprintf("datagram of %d bytes from %d to %d", len(b), m.nic.Machine(), to), func() bool {
		if err := m.nic.Datagram(to, b); err != nil {
			t.Fatal(err)
		}
		return box.has(m.nic.Machine(), b)
	})
}

func testDatagrams(t *testing.T, f Fabric) {
	a, b := join(t, f, 1), join(t, f, 65535)
	boxA, boxB := a.listen(), b.listen()
	for i, size := range []int{0, 1, 7, 1000, rdma.DatagramBytesMax} {
		a.send(t, 65535, boxB, pattern(size, byte(i)))
		b.send(t, 1, boxA, pattern(size, byte(i)))
		a.send(t, 1, boxA, pattern(size, byte(i))) // also to the sender itself
	}
	if boxA.count() != 10 || boxB.count() != 5 {
		t.Errorf("%d and %d different datagrams arrived, want 10 and 5", boxA.count(), boxB.count())
	}
	reused := []byte("first")
	if err := a.nic.Datagram(65535, reused); err != nil {
		t.Fatal(err)
	}
	copy(reused, "wrong")
	a.send(t, 65535, boxB, []byte("last"))
	if boxB.has(1, []byte("wrong")) {
		t.Error("a datagram changed after it had been sent")
	}
	err := a.nic.Datagram(65535, make([]byte, rdma.DatagramBytesMax+1))
	var e *rdma.Error
	if !errors.Is(err, rdma.ErrRange) || !errors.As(err, &e) || e.Op != rdma.OpDatagram || e.To != 65535 {
		t.Errorf("datagram that is too long: %v, want ErrRange", err)
	}
}

// testDatagramsThatAreLost sends to machines without a receiver, across a cut, and more datagrams
// than can be waiting: none of these calls may return an error.
func testDatagramsThatAreLost(t *testing.T, f Fabric) {
	a, b := join(t, f, 1), join(t, f, 2)
	for _, to := range []rdma.MachineID{2, 3} { // one has no receiver, the other does not exist
		if err := a.nic.Datagram(to, []byte("lost")); err != nil {
			t.Errorf("to machine %d: %v", to, err)
		}
	}
	box := b.listen()
	f.Cut(1, 2)
	if err := a.nic.Datagram(2, []byte("cut")); err != nil {
		t.Error(err)
	}
	f.Mend(1, 2)
	a.send(t, 2, box, []byte("mended"))
	if box.has(1, []byte("cut")) {
		t.Error("a datagram came across the cut")
	}

	big := make([]byte, rdma.DatagramBytesMax)
	for range 4096 { // more than can be waiting
		if err := a.nic.Datagram(2, big); err != nil {
			t.Fatal(err)
		}
	}
	a.send(t, 2, box, []byte("relieved"))
	b.nic.Datagrams(nil)
	if err := a.nic.Datagram(2, []byte("no receiver")); err != nil {
		t.Error(err)
	}
	after := b.listen()
	a.send(t, 2, after, []byte("another receiver"))
	// A datagram may be late, and reach the next receiver.
	for _, box := range []*mailbox{box, after} {
		sent := [][]byte{[]byte("lost"), []byte("mended"), big, []byte("relieved"), []byte("no receiver"), []byte("another receiver")}
		if n := box.others(1, sent...); n > 0 {
			t.Errorf("%d datagrams arrived that nobody has sent, or that were sent across the cut", n)
		}
	}
}

func testDatagramsOfAClosedNIC(t *testing.T, f Fabric) {
	a, b := join(t, f, 1), join(t, f, 2)
	box := a.listen()
	if err := a.nic.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.nic.Datagram(2, []byte("x")); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("from a closed NIC: %v, want ErrClosed", err)
	}
	if err := b.nic.Datagram(1, []byte("x")); err != nil {
		t.Errorf("to a closed NIC: %v", err)
	}
	a.listen() // changes nothing
	again := join(t, f, 1)
	boxAgain := again.listen()
	b.send(t, 1, boxAgain, []byte("hello"))
	if box.count() != 0 {
		t.Error("a closed NIC received datagrams")
	}
}

// testDatagramsToANewLife lets machines exchange datagrams over several lives.
func testDatagramsToANewLife(t *testing.T, f Fabric) {
	b := join(t, f, 2)
	boxB := b.listen()
	for life := range byte(3) {
		a := join(t, f, 1)
		box := a.listen()
		b.send(t, 1, box, []byte{life})
		a.send(t, 2, boxB, []byte{life})
		if err := a.nic.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
