package farmsql

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

// It is no warning that machines of one process wait for each other when they begin: farmsql check
// would print it beside its result.
func TestWaitingTogetherIsNoNews(t *testing.T) {
	var out bytes.Buffer
	c := Config{Logger: slog.New(slog.NewTextHandler(&out, nil))}
	for name, e := range map[string]struct {
		waiting func([]rdma.MachineID)
		resumed func()
		told    bool
	}{
		"together":  {c.eventsTogether(1).Waiting, c.eventsTogether(1).Resumed, false},
		"processes": {c.events(1).Waiting, c.events(1).Resumed, true},
	} {
		out.Reset()
		e.waiting([]rdma.MachineID{0})
		e.resumed()
		if told := strings.Contains(out.String(), "a majority"); told != e.told {
			t.Errorf("%s: told %v: %s", name, told, out.String())
		}
	}
}
