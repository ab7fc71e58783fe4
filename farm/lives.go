package farm

import "slices"

// Lives implements catalog.Lives: the lives of an instance's members, as one member knows them. A
// life is an incarnation, folded to 32 bits. The life of the CM leads.
type Lives struct{ m *Member }

// Lives returns the lives that the machine knows of.
func (m *Member) Lives() Lives { return Lives{m} }

// Own returns the machine's own life.
func (l Lives) Own() uint32 { return lifeOf(l.m.Incarnation()) }

// Has reports whether a life belongs to a present member.
func (l Lives) Has(life uint32) bool {
	return slices.ContainsFunc(l.m.membership.Configuration().Incarnation, func(incarnation uint64) bool {
		return lifeOf(incarnation) == life
	})
}

// Leads reports whether the machine is the CM.
func (l Lives) Leads() bool { return l.m.membership.Configuration().CM == l.m.id }

// lifeOf folds a random incarnation to 32 bits.
func lifeOf(incarnation uint64) uint32 { return uint32(incarnation ^ (incarnation >> 32)) }
