package cluster

import (
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
)

// Version returns the protocol version that the instance speaks. Data that more than two machines
// may have to read is written in this version.
func (c *Configuration) Version() protocol.Version { return max(c.Speaks, protocol.First) }

// Describe copies into c a member's own report of its address, zone and protocol, if that life is
// the member. A CM of an earlier program version has not passed the report on.
func (c *Configuration) Describe(m Member) {
	if i, ok := slices.BinarySearch(c.Machines, m.Machine); ok && c.Incarnation[i] == m.Incarnation {
		c.Address[i], c.Zone[i], c.Protocol[i] = m.Address, m.Zone, m.Protocol
	}
}

// Agree sets the instance's version to the highest that all members of c know. It never lowers the
// version, because memory is written in it. It fails with protocol.ErrRange.
func (c *Configuration) Agree() error {
	least := 0
	for i := range c.Machines {
		if err := c.speaker(i).Check(); err != nil {
			return err
		}
		if c.speaker(i).Max < c.speaker(least).Max {
			least = i
		}
	}
	for i := range c.Machines {
		if _, err := protocol.Common(c.speaker(least), c.speaker(i)); err != nil {
			return fmt.Errorf("cluster: configuration %d: %w", c.ID, err)
		}
	}
	if err := c.Knows(c.Machines[least], c.Protocol[least]); err != nil {
		return err
	}
	c.Speaks = c.speaker(least).Max
	return nil
}

// Knows fails with protocol.ErrRange if a machine that speaks r does not know the instance's
// version: members have written memory that the machine could not read.
func (c *Configuration) Knows(m rdma.MachineID, r protocol.Range) error {
	r = r.Stated()
	if r.Max >= c.Version() {
		return nil
	}
	return fmt.Errorf("%w: machine %d speaks %v, the instance speaks version %d since configuration %d or before: start machine %d with a newer farmsql, which speaks that version",
		protocol.ErrRange, m, r, c.Version(), c.ID, m)
}

// Admits fails with protocol.ErrRange if m, which wants to join or is a member, has no version in
// common with another member, does not know the instance's version, or states no valid range.
func (c *Configuration) Admits(m Member) error {
	if err := m.speaker().Check(); err != nil {
		return err
	}
	if err := c.Knows(m.Machine, m.Protocol); err != nil {
		return err
	}
	for i, id := range c.Machines {
		if id == m.Machine {
			continue // m itself, or an earlier life of it
		}
		if _, err := protocol.Common(m.speaker(), c.speaker(i)); err != nil {
			return fmt.Errorf("cluster: configuration %d: %w", c.ID, err)
		}
	}
	return nil
}

// Understand returns those of some machines that can be members of the configuration after c
// together: all of them or, if two share no protocol version, those that speak the instance's
// version. The error then says which two.
func (c *Configuration) Understand(some []Member) ([]Member, error) {
	for i, a := range some {
		for _, b := range some[:i] {
			if _, err := protocol.Common(b.speaker(), a.speaker()); err != nil {
				without := func(m Member) bool { return !m.speaker().Has(c.Version()) }
				return slices.DeleteFunc(slices.Clone(some), without), fmt.Errorf("cluster: configuration %d: %w", c.ID, err)
			}
		}
	}
	return some, nil
}

// Between returns the version of the protocol that two members speak with each other: the
// highest that both know.
func (c *Configuration) Between(a, b rdma.MachineID) (protocol.Version, error) {
	one, _ := c.Member(a)
	two, _ := c.Member(b)
	return protocol.Common(one.speaker(), two.speaker())
}

func (m Member) speaker() protocol.Speaker { return protocol.Machine(m.Machine, m.Protocol) }

func (c *Configuration) speaker(i int) protocol.Speaker {
	return protocol.Machine(c.Machines[i], c.Protocol[i])
}

// validateProtocol returns an error if c's protocol versions are not valid.
func (c *Configuration) validateProtocol() error {
	for i, r := range c.Protocol {
		r = r.Stated()
		if !r.IsValid() || !r.Has(c.Version()) {
			return fmt.Errorf("machine %d speaks versions %d to %d of the protocol, the instance version %d", c.Machines[i], r.Min, r.Max, c.Version())
		}
	}
	return nil
}
