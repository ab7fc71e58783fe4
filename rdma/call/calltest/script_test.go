package calltest

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/farmsql/farmsql/rdma"
)

func TestScript(t *testing.T) {
	pauses := 0
	w := &Wire{}
	w.Hold()
	for _, m := range []Message{{From: 0, To: 1, Kind: 7}, {From: 1, To: 0, Kind: 7, IsReply: true}, {From: 0, To: 2, Kind: 8}, {From: 2, To: 1, Kind: 9}} {
		m.key.id = uint64(m.Kind)<<1 | uint64(m.From)&1
		w.mu.held = append(w.mu.held, m)
	}
	name := func(m Message) string { return fmt.Sprintf("CALL-%d", m.Kind) }
	s := Script{
		Wire: w, Name: name, Text: func(m Message) string { return fmt.Sprint(name(m), " answer ", m.IsReply) },
		IsDead: func(m rdma.MachineID) bool { return m == 2 },
		Settle: func() string { return "settled\n" },
		Pause:  func() string { pauses++; return "paused\n" },
	}
	datadriven.RunTest(t, "testdata/script", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "held":
			return fmt.Sprintln(len(s.Chosen(t, d)))
		case "deliver":
			return s.Deliver(t, d, s.Chosen(t, d))
		case "drop":
			return s.Drop(s.Chosen(t, d))
		case "run":
			return s.Run(t, d)
		}
		d.Fatalf(t, "no command %q", d.Cmd)
		return ""
	})
	if pauses != 2 {
		t.Errorf("%d pauses", pauses)
	}
}
