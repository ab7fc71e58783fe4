// Package rdmatest is the conformance suite of rdma providers: a provider that passes Run in every
// mode it has keeps the promises of package rdma. The suite does not assume when operations
// complete, so the same tests run for providers that complete them before the post returns and for
// those that complete them later. Some tests race a reader against a writer; they are most useful
// under the race detector and on many processors.
package rdmatest

import (
	"runtime"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A Fabric is an empty network of the provider under test.
type Fabric interface {
	Join(m rdma.MachineID) (rdma.NIC, error)
	// Cut breaks the connections between a and b and prevents new ones. Once it has returned, no
	// operation between them takes effect.
	Cut(a, b rdma.MachineID)
	// Mend lets a and b connect again.
	Mend(a, b rdma.MachineID)
}

// Run runs the suite; open returns a new Fabric for each test.
func Run(t *testing.T, open func(t *testing.T) Fabric) {
	tests := []struct {
		name string
		run  func(*testing.T, Fabric)
	}{
		{"Costs", testCosts},
		{"Transfers", testTransfers},
		{"Tags", testTags},
		{"OrderOfOneQueue", testOrderOfOneQueue},
		{"FlushSendsToAll", testFlushSendsToAll},
		{"FlushKeepsTheOrder", testFlushKeepsTheOrder},
		{"FlushOfABrokenBatch", testFlushOfABrokenBatch},
		{"FlushOfTheClosed", testFlushOfTheClosed},
		{"SourceMayBeReused", testSourceMayBeReused},
		{"WriteLandsInRisingOrder", testWriteLandsInRisingOrder},
		{"ReadIsAtomicPerLine", testReadIsAtomicPerLine},
		{"DoorbellComesAfterWrites", testDoorbellComesAfterWrites},
		{"WriteRingWritesFirst", testWriteRingWritesFirst},
		{"FailedWriteRingIsSilent", testFailedWriteRingIsSilent},
		{"DoorbellFindsTheSibling", testDoorbellFindsTheSibling},
		{"OwnMachine", testOwnMachine},
		{"OutOfRange", testOutOfRange},
		{"UnknownKey", testUnknownKey},
		{"RefusedOperationsBreakNothing", testRefusedOperationsBreakNothing},
		{"RegistrationEndsMeanwhile", testRegistrationEndsMeanwhile},
		{"NamesAreTaken", testNamesAreTaken},
		{"NobodyThere", testNobodyThere},
		{"CutFlushesInOrder", testCutFlushesInOrder},
		{"NothingOvertakesAFailure", testNothingOvertakesAFailure},
		{"MendConnectsAgain", testMendConnectsAgain},
		{"ClosedMachineComesBack", testClosedMachineComesBack},
		{"ClosedIsClosed", testClosedIsClosed},
		{"OnlyTheGoneAreGone", testOnlyTheGoneAreGone},
		{"NothingLandsAfterwards", testNothingLandsAfterwards},
		{"ManyWorkers", testManyWorkers},
		{"Datagrams", testDatagrams},
		{"DatagramsThatAreLost", testDatagramsThatAreLost},
		{"DatagramsOfAClosedNIC", testDatagramsOfAClosedNIC},
		{"DatagramsToANewLife", testDatagramsToANewLife},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// patience is how long a test waits for an event that must happen.
const patience = 20 * time.Second

// key is the key under which every machine of the tests registers its memory.
const key rdma.Key = 0xfa23

// A machine of a test: a NIC with memory registered under key.
type machine struct {
	nic    rdma.NIC
	memory *nvram.Memory
}

func join(t *testing.T, f Fabric, id rdma.MachineID) *machine {
	t.Helper()
	nic, err := f.Join(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nic.Close(); err != nil {
			t.Error(err)
		}
	})
	memory, err := nvram.NewShared(memoryBytes)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{nic: nic, memory: memory}
	if err := nic.Register(key, m.memory); err != nil {
		t.Fatal(err)
	}
	return m
}

const memoryBytes = 1 << 16

// open opens a worker's queue.
func (m *machine) open(t *testing.T, id int, bell func()) *worker {
	t.Helper()
	q, err := m.nic.Open(id, bell)
	if err != nil {
		t.Fatal(err)
	}
	return &worker{t: t, q: q}
}

// twoMachines joins machines 1 and 2 and opens worker 0 of both.
func twoMachines(t *testing.T, f Fabric) (from *worker, to *machine) {
	a, b := join(t, f, 1), join(t, f, 2)
	b.open(t, 0, nil)
	return a.open(t, 0, nil), b
}

// A worker posts operations and waits for them.
type worker struct {
	t *testing.T
	q rdma.Queue
}

const waitTag = 0xabcdef

// write writes and waits. It returns the error of the post or of the completion.
func (w *worker) write(to rdma.MachineID, k rdma.Key, off uint64, src []byte) error {
	done, err := w.q.Write(to, k, off, src, waitTag)
	return w.finish(done, err)
}

// writeRing is write with WriteRing.
func (w *worker) writeRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte) error {
	done, err := w.q.WriteRing(to, k, off, src, waitTag)
	return w.finish(done, err)
}

func (w *worker) read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte) error {
	done, err := w.q.Read(to, k, off, dst, waitTag)
	return w.finish(done, err)
}

// finish waits for the operation that was just posted. No other may be pending.
func (w *worker) finish(done bool, err error) error {
	if done && err != nil {
		w.t.Fatalf("operation is both done and failed: %v", err)
	}
	if done || err != nil {
		return err
	}
	cs := w.poll(1)
	if cs[0].Tag != waitTag {
		w.t.Fatalf("completion has tag %#x, want %#x", cs[0].Tag, waitTag)
	}
	return cs[0].Err
}

// poll flushes, waits for n completions and polls no more than that.
func (w *worker) poll(n int) []rdma.Completion {
	w.q.Flush()
	var all []rdma.Completion
	buf := make([]rdma.Completion, max(1, n))
	var waited pause
	for deadline := time.Now().Add(patience); len(all) < n; waited.more() {
		got := w.q.Poll(buf[:n-len(all)])
		all = append(all, buf[:got]...)
		if time.Now().After(deadline) {
			w.t.Fatalf("%d of %d completions after %v", len(all), n, patience)
		}
	}
	return all
}

// A pause is a wait for something that other goroutines do. It counts how often it has been called.
type pause int

// more yields to other goroutines. After a while it sleeps, so that goroutines that wait for a socket
// run, too: as long as a goroutine is ready on each processor, Go looks at sockets only every 10 ms.
func (p *pause) more() {
	if *p++; *p < 100 {
		runtime.Gosched()
		return
	}
	time.Sleep(10 * time.Microsecond)
}

// none checks that nothing is left to poll.
func (w *worker) none() {
	w.t.Helper()
	var cs [1]rdma.Completion
	if w.q.Poll(cs[:]) != 0 {
		w.t.Errorf("unexpected completion %+v", cs[0])
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	var waited pause
	for deadline := time.Now().Add(patience); !condition(); waited.more() {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
