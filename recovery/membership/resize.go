package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// A resizeRequest is the argument of RESIZE.
type resizeRequest struct{ Replicas int }

// isOver reports whether c grants the request. Each CM then adds and removes replicas by the
// configuration alone, without the request.
func (r resizeRequest) isOver(c *cluster.Configuration) bool { return c.Replicas == r.Replicas }

// Resize makes the instance give all regions another number of replicas. It returns once a configuration says so;
// regions get and lose replicas afterwards, as soon as nothing else is being filled. Errors:
// cluster.ErrCannotResize, ctx's, and those for which IsPassing is true.
func (m *Machine) Resize(ctx context.Context, replicas int) error {
	r := resizeRequest{replicas}
	if c := m.Configuration(); c != nil && !c.CanResize() {
		if _, err := c.Resize(replicas); err != nil { // a CM of an earlier program does not know the call
			return err
		}
	}
	if err := m.askCM(ctx, kindResize, m.onResize, r, nil); err != nil {
		return err
	}
	return m.knows(r.isOver)
}

func (m *Machine) onResize(from call.Peer, arg []byte) ([]byte, error) {
	var r resizeRequest
	if err := json.Unmarshal(arg, &r); err != nil {
		return nil, fmt.Errorf("membership: RESIZE: %w", err)
	}
	if err := m.beginResize(from, r); err != nil {
		return nil, err
	}
	m.waitFor(m.patience(), func() bool { return !m.mu.phase.isMember() || !slices.Contains(m.mu.resizes, r) })
	return nil, m.answerResize(r)
}

// answerResize returns nil if a request is granted. A request that was dropped fails with an
// error after which it is not repeated: the last caller decides the number, not the one that
// asks most often.
func (m *Machine) answerResize(r resizeRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.isOver(m.mu.current):
		return nil
	case !m.mu.phase.isMember():
		return recovery.ErrNotMember
	case m.mu.current.CM != m.self.Machine:
		return recovery.ErrNotCM
	case slices.Contains(m.mu.resizes, r):
		return errChanging // the caller makes the call again
	}
	if _, err := m.mu.current.Resize(r.Replicas); err != nil {
		return err
	}
	return fmt.Errorf("%w to %d: somebody has asked for another number meanwhile", cluster.ErrCannotResize, r.Replicas)
}

// beginResize makes the CM begin a configuration that grants the request, unless it is granted already. An earlier
// request for another number is dropped.
func (m *Machine) beginResize(from call.Peer, r resizeRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refusesLocked(from); err != nil {
		return err
	}
	if _, err := m.mu.current.Resize(r.Replicas); err != nil {
		return err
	}
	m.mu.resizes = nil
	if !r.isOver(m.mu.current) {
		m.mu.resizes = []resizeRequest{r}
		m.leadLocked()
	}
	m.wakeLocked() // wakes the callers of the requests that are dropped
	return nil
}

// resized returns the configuration after base that grants the request. A request that has
// become impossible since it came is dropped, and its caller gets the error.
func (m *Machine) resized(base *cluster.Configuration, r resizeRequest) (*cluster.Configuration, error) {
	next, err := base.Resize(r.Replicas)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mu.resizes = slices.DeleteFunc(m.mu.resizes, func(x resizeRequest) bool { return x == r })
		m.wakeLocked()
	}
	return next, err
}
