package call

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
)

func speaks(from, to protocol.Version) protocol.Range { return protocol.Range{Min: from, Max: to} }

// Machines call each other if they have a version in common, whoever of them is the newer one.
func TestVersions(t *testing.T) {
	a, b := two(t)
	handled := 0
	for _, e := range []*Endpoint{a, b} {
		e.Handle(kind, func(Peer, []byte) ([]byte, error) { handled++; return nil, nil })
	}
	for _, x := range []struct {
		a, b protocol.Range
		ok   bool
	}{
		{protocol.Own, protocol.Own, true},
		{protocol.Own, protocol.Range{}, true}, // which does not say what it speaks
		{protocol.Own, speaks(1, 3), true},
		{protocol.Own, speaks(2, 3), true},
		{protocol.Own, speaks(protocol.Own.Max+1, protocol.Own.Max+2), false},
		{protocol.Range{}, speaks(2, 2), false},
	} {
		a.Speak(x.a)
		b.Speak(x.b)
		for _, ends := range [][2]*Endpoint{{a, b}, {b, a}} {
			handled = 0
			for _, to := range []Peer{ends[1].Self(), {ends[1].Self().Machine, AnyLife}} {
				_, err := ends[0].Call(patient(t), to, kind, nil)
				if x.ok && err != nil || !x.ok && !errors.Is(err, protocol.ErrRange) {
					t.Errorf("%v and %v: %v", x.a, x.b, err)
				}
				if !x.ok && (!strings.Contains(err.Error(), "machine 1 speaks "+x.a.Stated().String()) ||
					!strings.Contains(err.Error(), "machine 2 speaks "+x.b.Stated().String()) || !strings.Contains(err.Error(), "start machine 1 with a newer farmsql")) {
					t.Error(err)
				}
			}
			if (handled == 2) != x.ok || handled == 1 {
				t.Errorf("%v and %v: handled %d times", x.a, x.b, handled)
			}
		}
	}
	// Of another life it matters only that it is another one.
	if _, err := a.Call(patient(t), Peer{2, nextLife(2)}, kind, nil); !errors.Is(err, ErrOtherLife) {
		t.Error(err)
	}
}

// A program of version 1 does not look at the versions that others speak: its answers are not
// accepted.
func TestAnswersOfAnOlderProgram(t *testing.T) {
	n := local.NewNetwork(local.Options{})
	a := join(t, n, 1, life(1))
	a.Speak(speaks(2, 3))
	nic, err := n.Join(2)
	if err != nil {
		t.Fatal(err)
	}
	defer nic.Close()
	nic.Datagrams(func(_ rdma.MachineID, b []byte) {
		m, _ := decode(b)
		if err := nic.Datagram(1, (&message{typ: reply, kind: m.kind, id: m.id, from: life(2), to: m.from}).encode()); err != nil {
			t.Error(err)
		}
	})
	if _, err := a.Call(patient(t), Peer{2, life(2)}, kind, nil); !errors.Is(err, protocol.ErrRange) || !strings.Contains(err.Error(), "machine 2 speaks version 1") {
		t.Error(err)
	}
}

// Datagrams of programs of version 1, which leave four bytes zero, are understood. Such a program
// understands the datagrams of this one, because it does not look at these bytes.
func TestDatagramOfVersion1(t *testing.T) {
	old := []byte{1, 1, kind, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 'x'}
	m, isMessage := decode(old)
	if !isMessage || m.typ != request || m.id != 9 || m.from != 5 || m.to != 6 || string(m.body) != "x" || m.speaks.Stated() != speaks(1, 1) {
		t.Errorf("%+v, %v", m, isMessage)
	}
	m.speaks = protocol.Own
	b := m.encode()
	if copy(b[4:8], make([]byte, 4)); !bytes.Equal(b, old) {
		t.Errorf("%x, want %x", b, old)
	}
}
