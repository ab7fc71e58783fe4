package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
)

// Version returns the protocol version that the instance speaks. Data that more than two machines
// may have to read is written in this version.
func (c *Configuration) Version() protocol.Version { return max(c.Speaks, protocol.First) }

// Describe copies into c a member's own report of its address, zone and protocol, if m is the life
// that is the member. A CM of an earlier program version does not pass the report on.
func (c *Configuration) Describe(m Member) {
	if i, ok := slices.BinarySearch(c.Machines, m.Machine); ok && c.Incarnation[i] == m.Incarnation {
		c.Address[i], c.Zone[i], c.Protocol[i] = m.Address, m.Zone, m.Protocol
	}
}

// Agree sets the instance's version to the highest that all members of c know. It never lowers the
// version, because memory is written in it. It fails with protocol.ErrRange if there is no such
// version.
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

// Admits checks the versions of m, which wants to join or is a member. It fails with
// protocol.ErrRange if m has no version in common with another member, does not know the instance's
// version, or states no valid range.
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

// Understand returns those of the given machines, m among them, that can be members of the
// configuration after c together with m. They are the largest subset with m that speaks one version,
// the instance's or a higher one; of two subsets of the same size, the one with the lower version.
//
// Each machine computes this from the machines that it hears, which share a version with it. All the
// same, the machines of the largest subset agree: each of them hears from all the others, and none of
// them is in a larger subset.
func (c *Configuration) Understand(m rdma.MachineID, some []Member) (most []Member) {
	self := some[slices.IndexFunc(some, func(x Member) bool { return x.Machine == m })].speaker()
	for v := int(max(self.Min, c.Version())); v <= int(self.Max); v++ { // int: Max may be the highest Version
		speakV := slices.DeleteFunc(slices.Clone(some), func(x Member) bool {
			return !x.speaker().IsValid() || !x.speaker().Has(protocol.Version(v))
		})
		if len(speakV) > len(most) {
			most = speakV
		}
	}
	return most
}

// NotUnderstood returns a protocol.ErrRange for machines that cannot all be members of the
// configuration after c. Its text lists the versions that each speaks.
func (c *Configuration) NotUnderstood(some []Member) error {
	var speak []string
	for _, m := range some {
		speak = append(speak, fmt.Sprintf("%s speaks %v", m.speaker().Name, m.speaker().Range))
	}
	return fmt.Errorf("%w: %s: more than half of the %d machines of configuration %d must speak one version, %d or higher: start some of them with another farmsql",
		protocol.ErrRange, strings.Join(speak, ", "), len(c.Machines), c.ID, c.Version())
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
