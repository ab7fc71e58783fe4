package calltest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/rdma"
)

// A Transcript is what machines do between two moments in which all of them wait. It shows
// the same whatever the order is in which what happens at once happens: by machine, first what
// each does, in that order, and then what it sends, by addressee. It is not safe for
// concurrent use.
type Transcript struct{ lines []line }

type line struct {
	machine rdma.MachineID
	rank    int // 0: what it does; then what it sends, by addressee
	text    string
}

// lastRank is that of what a machine does after all that it sends.
const lastRank = 1 << 20

// Do notes what a machine does.
func (t *Transcript) Do(m rdma.MachineID, text string) {
	t.lines = append(t.lines, line{machine: m, text: text})
}

// Send notes what a machine sends to another one.
func (t *Transcript) Send(m, to rdma.MachineID, text string) {
	t.lines = append(t.lines, line{m, 1 + int(to), text})
}

// End notes what a machine does last.
func (t *Transcript) End(m rdma.MachineID, text string) {
	t.lines = append(t.lines, line{m, lastRank, text})
}

// Take returns what has been noted since the last call.
func (t *Transcript) Take() string {
	slices.SortStableFunc(t.lines, func(a, b line) int {
		c := cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.rank, b.rank))
		if c == 0 && a.rank > 0 {
			return strings.Compare(a.text, b.text)
		}
		return c
	})
	var b strings.Builder
	for _, l := range t.lines {
		fmt.Fprintf(&b, "  %d %s\n", l.machine, l.text)
	}
	t.lines = nil
	return b.String()
}
