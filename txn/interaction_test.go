package txn_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// The scripts in testdata/interaction drive transactions of several machines, and show
// each operation that a machine posts and each step that it takes, in their order. So they
// say what the order of steps is, and any change of it shows.
//
//	open machines=N replicas=N objects=N   objects are made one at each machine in turn
//	run machine=N [name=NAME]              a transaction, of the lines
//	                                         read OBJECT
//	                                         write OBJECT VALUE
//	                                         free OBJECT
//	                                       which commits, unless it has a name
//	commit name=NAME
//	truncate                               what is committed is truncated everywhere
//	get object=N                           its value, at its primary
//
// A line is "machine: step", or "from > to: operation".
func TestInteraction(t *testing.T) {
	datadriven.Walk(t, "testdata/interaction", func(t *testing.T, path string) {
		x := &interaction{named: make(map[string]*txn.Tx), numbers: make(map[record.ID]int)}
		datadriven.RunTest(t, path, x.run)
	})
}

// An interaction is the instance that a script drives, and what it does.
type interaction struct {
	*rig
	named map[string]*txn.Tx
	// numbers are those of transactions, in the order in which they are heard of.
	numbers map[record.ID]int

	mu  sync.Mutex
	log strings.Builder
}

func (x *interaction) say(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fmt.Fprintf(&x.log, format+"\n", args...)
}

// said returns what has been said since the last call.
func (x *interaction) said() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.log.Reset()
	return x.log.String()
}

func (x *interaction) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "open":
		x.open(t, d)
	case "run":
		var machine int
		d.ScanArgs(t, "machine", &machine)
		x.begin(t, d, machine)
	case "commit":
		var name string
		d.ScanArgs(t, "name", &name)
		x.commit(x.named[name])
		delete(x.named, name)
	case "truncate":
		x.settle()
	case "get":
		var object int
		d.ScanArgs(t, "object", &object)
		x.said()
		x.get(object)
	default:
		d.Fatalf(t, "no command %q", d.Cmd)
	}
	return x.said()
}

func (x *interaction) open(t *testing.T, d *datadriven.TestData) {
	var machines, replicas, objects int
	d.ScanArgs(t, "machines", &machines)
	d.ScanArgs(t, "replicas", &replicas)
	d.ScanArgs(t, "objects", &objects)
	x.rig = open(t, txntest.Config{Machines: machines, Replicas: replicas, Workers: 1, Clock: newHandClock(), Wrap: x.tap}, objects)
	x.settle()
	for i := range machines {
		x.Machine(i).OnStep(func(s step.Step) { x.say("%d: %v", i, s) })
	}
	x.said()
	clear(x.numbers)
	for i, p := range x.ptrs {
		primary, err := x.Machine(0).Primary(p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		x.say("object %d: region %d, primary %d", i, p.Addr.Region(), primary)
	}
}

// begin runs a transaction up to its commit, and commits it if it has no name.
func (x *interaction) begin(t *testing.T, d *datadriven.TestData, machine int) {
	tx := x.Machine(machine).Begin()
	for _, line := range strings.Split(d.Input, "\n") {
		var op string
		var object int
		var value uint64
		if _, err := fmt.Sscan(line, &op, &object); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		_, _ = fmt.Sscan(line, &op, &object, &value)
		if err := x.do(tx, op, x.ptrs[object], value); err != nil {
			x.say("%s: %v", line, err)
		}
	}
	if d.HasArg("name") {
		var name string
		d.ScanArgs(t, "name", &name)
		x.named[name] = tx
		return
	}
	x.commit(tx)
}

func (x *interaction) do(tx *txn.Tx, op string, p region.Ptr, value uint64) error {
	switch op {
	case "read":
		got, err := read(tx, p)
		if err == nil {
			x.say("reads %d", got)
		}
		return err
	case "write":
		return write(tx, p, value)
	case "free":
		return tx.Free(p)
	}
	return errors.New("no such operation")
}

func (x *interaction) commit(tx *txn.Tx) {
	if err := tx.Commit(ctx); err != nil {
		x.say("aborted: %v", err)
		return
	}
	x.say("committed")
}

// get returns the value of an object, without showing how it is read.
func (x *interaction) get(object int) {
	var got uint64
	var err error
	x.rig.run(0, func(t *txn.Tx) error {
		got, err = read(t, x.ptrs[object])
		return nil
	})
	x.said()
	x.say("%d %v", got, err)
}

// tap has what a machine posts be said.
func (x *interaction) tap(nic rdma.NIC) rdma.NIC { return tappedNIC{nic, x} }

type tappedNIC struct {
	rdma.NIC
	x *interaction
}

func (n tappedNIC) Open(worker int, bell func()) (rdma.Queue, error) {
	q, err := n.NIC.Open(worker, bell)
	return tappedQueue{q, n.Machine(), n.x}, err
}

type tappedQueue struct {
	rdma.Queue
	from rdma.MachineID
	x    *interaction
}

func (q tappedQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	q.x.say("%d > %d: READ %d bytes of %s", q.from, to, len(dst), txn.KeyText(k))
	return q.Queue.Read(to, k, off, dst, tag)
}

func (q tappedQueue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	q.x.say("%d > %d: %s", q.from, to, q.text(k, src))
	return q.Queue.Write(to, k, off, src, tag)
}

func (q tappedQueue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	q.x.say("%d > %d: %s, and ring", q.from, to, q.text(k, src))
	return q.Queue.WriteRing(to, k, off, src, tag)
}

// text says what is written.
func (q tappedQueue) text(k rdma.Key, src []byte) string {
	text, id, isRecord := txn.WriteText(k, src)
	if isRecord {
		text = fmt.Sprintf("tx %d, %s", q.x.number(id), text)
	}
	return text
}

func (q tappedQueue) Ring(to rdma.MachineID) error {
	q.x.say("%d > %d: ring", q.from, to)
	return q.Queue.Ring(to)
}

// number returns that of a transaction.
func (x *interaction) number(id record.ID) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.numbers[id]; !ok {
		x.numbers[id] = len(x.numbers) + 1
	}
	return x.numbers[id]
}
