package calltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/farmsql/farmsql/rdma"
)

// A Script carries out the commands of a datadriven test that are about messages on a Wire:
//
//	deliver [from=N] [to=N] [what=NAME] [no-answers]
//	                              the messages that are held now, one after the other
//	drop [from=N] [to=N] [what=NAME] [no-answers]
//	run [without=NAME]            deliver until nothing is held, except messages of call NAME
//
// A message is shown as "from > to: message", and below it what the machines do then.
type Script struct {
	Wire *Wire
	// Name returns the name of a message's call, without blanks, Text the message in words.
	Name, Text func(Message) string
	// IsDead reports whether a machine is dead: messages to it are lost.
	IsDead func(rdma.MachineID) bool
	// Settle lets the machines do what they can, and returns what they have done.
	Settle func() string
	// Pause, if not nil, is called when nothing is held. It gives machines the time to repeat calls
	// that were refused, and returns what they have done.
	Pause func() string
}

// Chosen returns the held messages that match the arguments of a command.
func (s *Script) Chosen(t *testing.T, d *datadriven.TestData) []Message {
	return slices.DeleteFunc(s.Wire.Held(), func(m Message) bool {
		what := ""
		d.MaybeScanArgs(t, "what", &what)
		matches := func(arg string, id rdma.MachineID) bool {
			n := int(id) // without the argument every machine matches
			d.MaybeScanArgs(t, arg, &n)
			return n == int(id)
		}
		isOtherCall := what != "" && s.Name(m) != what
		isUnwanted := m.IsReply && d.HasArg("no-answers")
		return !matches("from", m.From) || !matches("to", m.To) || isOtherCall || isUnwanted
	})
}

// Deliver delivers messages. The test fails if there are none.
func (s *Script) Deliver(t *testing.T, d *datadriven.TestData, messages []Message) string {
	if len(messages) == 0 {
		d.Fatalf(t, "no such message is held")
	}
	return s.deliver(messages)
}

func (s *Script) deliver(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%d > %d: %s", m.From, m.To, s.Text(m))
		if s.IsDead(m.To) {
			fmt.Fprintf(&b, ", which is lost: %d is dead", m.To)
		}
		s.Wire.Deliver(m)
		b.WriteString("\n" + s.Settle())
	}
	return b.String()
}

// Drop loses messages.
func (s *Script) Drop(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%d > %d: %s, which is lost\n", m.From, m.To, s.Text(m))
		s.Wire.Drop(m)
	}
	return b.String()
}

// Run delivers messages until none is held. It leaves out the messages of the call that the command's
// argument "without" names.
func (s *Script) Run(t *testing.T, d *datadriven.TestData) string {
	without := ""
	d.MaybeScanArgs(t, "without", &without)
	held := func() []Message {
		return slices.DeleteFunc(s.Wire.Held(), func(m Message) bool { return s.Name(m) == without })
	}
	var b strings.Builder
	for {
		messages := held()
		if len(messages) == 0 && s.Pause != nil {
			b.WriteString(s.Pause())
			messages = held()
		}
		if len(messages) == 0 {
			return b.String()
		}
		b.WriteString(s.deliver(messages))
	}
}
