package calltest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/rdma"
)

// A Transcript records what machines do between two moments in which all of them wait. Its text
// does not depend on the order of concurrent events: it lists, by machine, first the actions, in
// their order, and then the messages sent, by addressee. It is not safe for concurrent use.
type Transcript struct{ lines []line }

type line struct {
	machine rdma.MachineID
	rank    int // 0 for an action; for a message, its place by addressee; lastRank for the last action
	text    string
}

// lastRank is the rank of an action that is listed after all messages.
const lastRank = 1 << 20

// Do records an action of a machine.
func (t *Transcript) Do(m rdma.MachineID, text string) {
	t.lines = append(t.lines, line{machine: m, text: text})
}

// Send records a message from one machine to another.
func (t *Transcript) Send(m, to rdma.MachineID, text string) {
	t.lines = append(t.lines, line{m, 1 + int(to), text})
}

// End records a machine's last action.
func (t *Transcript) End(m rdma.MachineID, text string) {
	t.lines = append(t.lines, line{m, lastRank, text})
}

// Take returns what has been recorded since the last Take. The actions that Do recorded stay in their
// order; messages from one machine to another, which may be concurrent, and last actions are in the
// order of their texts.
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
