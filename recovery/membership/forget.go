package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// A forgetRequest is the argument of FORGET.
type forgetRequest struct {
	Machine rdma.MachineID
	Lost    []region.ID
}

// isOver reports whether there is nothing left to do for a request in c: c no longer waits for the
// machine, or would lose other regions than the operator has named. That can happen while a request
// waits for another change of the configuration. The operator is told when the call is repeated.
func (r forgetRequest) isOver(c *cluster.Configuration) bool {
	all, only := c.Awaited(r.Machine)
	return len(all) == 0 || !slices.Equal(only, r.Lost)
}

// Forget ends the wait for the memory of a machine, because an operator knows that it is gone.
// Regions that wait for no other memory are lost; lost must list exactly these, ascending, as shown
// to the operator. Forget returns once a configuration no longer waits for the machine. Errors:
// ErrNotAwaited, ctx's, and those for which IsPassing is true.
func (m *Machine) Forget(ctx context.Context, machine rdma.MachineID, lost []region.ID) error {
	return m.askCM(ctx, kindForget, m.onForget, forgetRequest{machine, lost}, nil)
}

// onForget answers FORGET, as the CM, once no region waits for the memory any more.
func (m *Machine) onForget(from call.Peer, arg []byte) ([]byte, error) {
	var r forgetRequest
	if err := json.Unmarshal(arg, &r); err != nil {
		return nil, fmt.Errorf("membership: FORGET: %w", err)
	}
	begun, err := m.beginForget(from, r)
	if err != nil || !begun {
		return nil, err
	}
	over := func(c *cluster.Configuration) bool { all, _ := c.Awaited(r.Machine); return len(all) == 0 }
	if !m.waitFor(m.patience(), func() bool { return !m.mu.phase.isMember() || over(m.mu.current) }) {
		return nil, errChanging // the caller makes the call again
	}
	return nil, nil
}

// beginForget makes the CM begin a configuration that no longer waits for the machine. It returns
// false if nothing is left to do.
func (m *Machine) beginForget(from call.Peer, r forgetRequest) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if !m.mu.phase.isMember() || c.CM != m.self.Machine {
		return false, recovery.ErrNotCM
	}
	all, only := c.Awaited(r.Machine)
	isNotLost := func(id region.ID) bool { return !slices.Contains(c.Lost, id) }
	areLost := len(r.Lost) > 0 && !slices.ContainsFunc(r.Lost, isNotLost)
	switch {
	case !recovery.IsMember(c, from):
		return false, recovery.ErrNotMember
	case len(all) == 0 && areLost:
		return false, nil // a repeated call
	case len(all) == 0:
		return false, fmt.Errorf("%w: no region waits for machine %d", ErrNotAwaited, r.Machine)
	case !slices.Equal(only, r.Lost):
		return false, fmt.Errorf("%w: regions %v would be lost with machine %d, not %v", ErrNotAwaited, only, r.Machine, r.Lost)
	}
	if !slices.ContainsFunc(m.mu.forget, func(x forgetRequest) bool { return x.Machine == r.Machine }) {
		m.mu.forget = append(m.mu.forget, r)
	}
	m.leadLocked()
	return true, nil
}
