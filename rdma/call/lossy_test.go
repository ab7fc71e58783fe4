package call

import (
	"math/rand/v2"
	"sync"

	"github.com/farmsql/farmsql/rdma"
)

// lossy is a NIC that loses some datagrams, and delivers others twice, or later,
// when the next one is sent.
type lossy struct {
	rdma.NIC
	mu   sync.Mutex
	rng  *rand.Rand
	kept []datagram
}

type datagram struct {
	to rdma.MachineID
	b  []byte
}

func (l *lossy) Datagram(to rdma.MachineID, b []byte) error {
	l.mu.Lock()
	send := l.kept
	l.kept = nil
	d := datagram{to, b}
	switch l.rng.IntN(5) {
	case 0, 1: // lost
	case 2:
		send = append(send, d, d)
	case 3:
		l.kept = append(l.kept, d)
	default:
		send = append(send, d)
	}
	l.mu.Unlock()
	for _, d := range send {
		if err := l.NIC.Datagram(d.to, d.b); err != nil {
			return err
		}
	}
	return nil
}
