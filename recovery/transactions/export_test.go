package transactions

import (
	"context"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
)

// KindConnect is the kind of CONNECT calls.
const KindConnect = kindConnect

// Late returns what Commit of configuration id goes on to do, for a Commit that
// the next Freeze overtakes.
func (t *Recovery) Late(id cluster.ID) func() error {
	r := t.current(id)
	return func() error { return r.activate(context.Background()) }
}

// RequestedVote returns what this machine answers to REQUEST-VOTE.
func (t *Recovery) RequestedVote(in cluster.ID, tx record.ID, id region.ID) Vote {
	asked := []entry{{Evidence: evidence.Evidence{ID: tx, Region: id}}}
	return Vote(t.current(in).onRequestVote(asked)[0])
}

// Exchange is what a machine does that has found itself not connected to a member, just
// before it was.
func (t *Recovery) Exchange(id cluster.ID, with rdma.MachineID) error {
	return t.current(id).exchange(context.Background(), with)
}

// State says how far the recovery at this machine is. It is for machines in the simulator, where
// nothing else runs: it takes no locks, since its caller may hold any.
func (t *Recovery) State() string {
	if t.mu.run == nil {
		return "no recovery"
	}
	return t.mu.run.mu.state.String()
}

var callNames = map[uint8]string{
	kindNeedRecovery: "NEED-RECOVERY", kindRegionActive: "REGION-ACTIVE", kindReplicate: "REPLICATE-TX-STATE", kindVote: "RECOVERY-VOTE",
	kindRequestVote: "REQUEST-VOTE", kindOutcome: "COMMIT-RECOVERY or ABORT-RECOVERY", kindTruncateRecovery: "TRUNCATE-RECOVERY",
	kindDecided: "DECIDED", kindPark: "PARK", kindBlocks: "BLOCKS", kindConnect: "CONNECT", kindRelay: "RELAY", kindRelayed: "RELAYED",
}

// KindNamed is the kind of calls with a name.
func KindNamed(name string) uint8 {
	for kind, n := range callNames {
		if n == name {
			return kind
		}
	}
	return 0
}

// Batch is the argument of a call about one transaction, or none, and one region.
func Batch(in cluster.ID, tx record.ID, id region.ID, seen evidence.Seen) []byte {
	return batches(in, []entry{{Evidence: evidence.Evidence{ID: tx, Regions: []region.ID{id}, Region: id, Seen: seen}}})[0]
}

// Relayed is the argument of RELAYED of a RECOVERY-VOTE of machine from.
func Relayed(from rdma.MachineID, arg []byte) []byte { return encodeRelay(from, kindVote, arg) }

// CallName is the name of a kind of calls in docs/internals/messages.md.
func CallName(kind uint8) string { return callNames[kind] }

var (
	seenNames = [...]string{"LOCK", "COMMIT-BACKUP", "COMMIT-PRIMARY", "COMMIT-RECOVERY", "ABORT-RECOVERY", "truncated"}
	voteNames = [...]string{"unknown", "abort", "truncated", "lock", "commit-backup", "commit-primary"}
)

func (v Vote) String() string { return voteNames[v] }

// CallText returns the content of a call in words; number is that of a transaction.
func CallText(kind uint8, body []byte, number func(record.ID) int) string {
	if kind == kindConnect || kind == kindRelay || kind == kindRelayed {
		return callNames[kind]
	}
	id, list, _, err := decodeBatch(body)
	if err != nil {
		return err.Error()
	}
	if n := len(list); kind == kindDecided && n > 0 {
		return fmt.Sprintf("DECIDED %d (%d bounds)", id, n)
	}
	var said []string
	for _, e := range list {
		tx, seen := "", ""
		if e.ID != (record.ID{}) {
			tx = fmt.Sprintf("tx %d", number(e.ID))
		}
		for i, name := range seenNames {
			if e.Seen&(1<<i) != 0 {
				seen += " " + name
			}
		}
		switch kind {
		case kindNeedRecovery, kindReplicate, kindPark:
			said = append(said, fmt.Sprintf("%s in region %d seen%s", tx, e.Region, seen))
		case kindVote:
			said = append(said, fmt.Sprintf("%s in region %d: %v", tx, e.Region, voteOf(e.Seen)))
		case kindRequestVote:
			said = append(said, fmt.Sprintf("%s in region %d", tx, e.Region))
		case kindOutcome:
			said = append(said, fmt.Sprintf("%s: %s", tx, map[bool]string{true: "commit", false: "abort"}[e.flag != 0]))
		case kindTruncateRecovery:
			said = append(said, tx)
		case kindRegionActive, kindBlocks:
			said = append(said, fmt.Sprintf("region %d", e.Region))
		}
	}
	if len(said) == 0 {
		return fmt.Sprintf("%s %d", callNames[kind], id)
	}
	return fmt.Sprintf("%s %d (%s)", callNames[kind], id, strings.Join(said, "; "))
}

// AnswerText returns the answer to a call in words.
func AnswerText(kind uint8, body []byte) string {
	text := callNames[kind] + " answered"
	if kind == kindRequestVote {
		for _, v := range body {
			text += fmt.Sprintf(", %v", Vote(v))
		}
	}
	return text
}
