package verbs

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

// parts returns the packets of a datagram.
func parts(from rdma.MachineID, number uint64, b []byte, mtu int) (packets [][]byte) {
	for i := range partsOf(len(b), mtu) {
		packet := make([]byte, mtu)
		packets = append(packets, packet[:encodePart(packet, from, number, i, b)])
	}
	return packets
}

// Datagrams of all lengths come together, whatever the order of their parts, and nothing else does.
func TestAssembly(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 6))
	for _, mtu := range mtus {
		a := newAssembly()
		for number, size := range []int{0, 1, 231, 232, 233, 1000, 4072, 4073, rdma.DatagramBytesMax} {
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(draw.Uint32())
			}
			packets := parts(7, uint64(number), b, mtu)
			draw.Shuffle(len(packets), func(i, j int) { packets[i], packets[j] = packets[j], packets[i] })
			for i, p := range packets {
				from, got, ok := a.add(p)
				if ok != (i == len(packets)-1) || from != 7 || ok && !bytes.Equal(got, b) {
					t.Fatalf("MTU %d, %d bytes, packet %d of %d: %v, from %d, %d bytes", mtu, size, i, len(packets), ok, from, len(got))
				}
				if _, _, again := a.add(p); again && len(packets) > 1 {
					t.Fatalf("a packet counts twice")
				}
			}
			a = newAssembly() // the last packet came twice, and began another datagram
		}
	}
}

// Datagrams of which parts are lost do not pile up, and do not mix.
func TestPartsAreLost(t *testing.T) {
	a := newAssembly()
	for number := range uint64(1000) {
		b := bytes.Repeat([]byte{byte(number)}, 3000)
		for i, p := range parts(1, number, b, 1024) {
			if i == int(number%4) && number%2 == 0 {
				continue
			}
			if _, got, ok := a.add(p); ok && !bytes.Equal(got, b) {
				t.Fatalf("datagram %d is mixed", number)
			}
		}
	}
	if n := len(a.partial[1]); n == 0 || n > partialMax {
		t.Errorf("%d datagrams are incomplete, want some, at most %d", n, partialMax)
	}
}

// A later part that contradicts the first does not count.
func TestPartsContradict(t *testing.T) {
	a := newAssembly()
	long, short := parts(1, 1, make([]byte, 3000), 1024), parts(1, 1, make([]byte, 2000), 1024)
	a.add(long[0])
	if _, _, ok := a.add(short[1]); ok {
		t.Error("parts of two datagrams are one")
	}
	if p := a.partial[1][0]; p.missing != 3-1 {
		t.Errorf("%d parts are missing", p.missing)
	}
}

// FuzzAssembly assembles arbitrary parts: that never panics, and returns nothing longer than a datagram.
func FuzzAssembly(f *testing.F) {
	for _, p := range parts(1, 2, make([]byte, 3000), 1024) {
		f.Add(p, p)
	}
	f.Fuzz(func(t *testing.T, p, q []byte) {
		a := newAssembly()
		for _, b := range [][]byte{p, q, p} {
			if _, got, ok := a.add(b); ok && len(got) > rdma.DatagramBytesMax {
				t.Errorf("a datagram of %d bytes", len(got))
			}
		}
	})
}
