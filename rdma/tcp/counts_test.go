package tcp

import (
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

// A batch is one system call of each end, however many operations it has. What is refused is not counted, and neither is what a
// machine does to itself.
func TestCounts(t *testing.T) {
	q, _, nics := pair(t, 1<<12)
	var cs [4]rdma.Completion
	batch := func(operations int) {
		t.Helper()
		for i := range operations {
			if _, err := q.Write(1, 5, 64*uint64(i), make([]byte, 64), 1); err != nil {
				t.Fatal(err)
			}
		}
		q.Flush()
		for done := 0; done < operations; {
			until(t, func() bool {
				done += q.Poll(cs[:])
				return done == operations
			}, func() any { return done })
		}
	}
	batch(1) // connects
	sender, receiver := nics[1].Counts(), nics[0].Counts()
	batch(4)
	if _, err := q.Write(1, 5, 1, make([]byte, 8), 1); err == nil {
		t.Error("misaligned")
	}
	if err := q.Ring(2); err != nil { // itself
		t.Error(err)
	}
	if got, want := nics[1].Counts().Sub(sender), (rdma.Counts{Operations: 4, Bytes: 256, Calls: 1}); got != want {
		t.Errorf("the sender: %+v, want %+v", got, want)
	}
	got := nics[0].Counts().Sub(receiver)
	if got.Answers < 1 || got.Answers > 4 || got.Calls != 0 || got.Operations != 0 {
		t.Errorf("the receiver: %+v", got)
	}
}
