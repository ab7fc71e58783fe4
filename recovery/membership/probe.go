package membership

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A probed is a machine's answer to a probe: its incarnation.
type probed struct {
	machine     rdma.MachineID
	incarnation uint64
	err         error
}

const probeBytes = nvram.WordBytes

// A prober reads the probe words of other machines (SOSP'15 section 5.2 step 2).
// It uses READs, which no busy thread of those machines can delay.
type prober struct {
	clock clock.Clock
	word  *nvram.Memory // this machine's probe word
	queue rdma.Queue
	bell  clock.Event

	run lockrank.Mutex[lockrank.Probe] // lets one round of probes run at a time; held across waits
	tag uint64                         // the tag of the last READ
}

func newProber(cfg Config, word *nvram.Memory) (*prober, error) {
	p := &prober{clock: cfg.Clock, word: word, bell: cfg.Clock.NewEvent()}
	var err error
	if p.queue, err = cfg.NIC.Open(cfg.Worker, p.bell.Set); err != nil {
		return nil, fmt.Errorf("membership: open the queue of probes: %w", err)
	}
	return p, nil
}

func (p *prober) close() { _ = p.queue.Close() }

// probe reads the word of all machines concurrently. Machines that have not answered after d count
// as failed.
func (p *prober) probe(machines []rdma.MachineID, d time.Duration) []probed {
	p.clock.Lock(&p.run)
	defer p.run.Unlock()
	deadline := p.clock.Now().Add(d)
	results := make([]probed, len(machines))
	buffers := make([][]byte, len(machines))
	first := p.tag + 1
	open := 0
	// Take the failures of earlier rounds first: until then a broken connection stays broken.
	p.poll(first, nil, nil)
	for i, m := range machines {
		p.tag++
		buffers[i] = make([]byte, probeBytes) // a late READ may still write to it
		results[i] = probed{machine: m, err: fmt.Errorf("machine %d: %w: no answer", m, rdma.ErrBroken)}
		done, err := p.queue.Read(m, ProbeKey, 0, buffers[i], p.tag)
		switch {
		case err != nil:
			results[i].err = err
		case done:
			results[i].take(buffers[i])
		default:
			open++
		}
	}
	p.queue.Flush()
	for open > 0 {
		open -= p.poll(first, results, buffers)
		left := deadline.Sub(p.clock.Now())
		if open > 0 && (left <= 0 || !p.bell.WaitFor(left)) {
			p.poll(first, results, buffers)
			break
		}
	}
	return results
}

// poll takes the available completions, and returns how many belong to this round.
func (p *prober) poll(first uint64, results []probed, buffers [][]byte) (n int) {
	var cs [16]rdma.Completion
	for {
		k := p.queue.Poll(cs[:])
		if k == 0 {
			return n
		}
		for _, c := range cs[:k] {
			if c.Tag < first || c.Tag > p.tag {
				continue // a completion of an earlier round, or of a doorbell
			}
			n++
			if i := c.Tag - first; c.Err != nil {
				results[i].err = c.Err
			} else {
				results[i].take(buffers[i])
			}
		}
	}
}

func (r *probed) take(b []byte) {
	r.incarnation, r.err = binary.LittleEndian.Uint64(b), nil
}
