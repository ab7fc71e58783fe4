package farm

import "slices"

// Lives are the lives of an instance's members, as one member knows them (catalog.Lives): a life is
// an incarnation, and the CM leads.
type Lives struct{ m *Member }

// Lives returns the lives that the machine knows of.
func (m *Member) Lives() Lives { return Lives{m} }

// Own returns the machine's own life.
func (l Lives) Own() uint32 { return lifeOf(l.m.Incarnation()) }

// Has reports whether a life is that of a member.
func (l Lives) Has(life uint32) bool {
	return slices.ContainsFunc(l.m.membership.Configuration().Incarnation, func(incarnation uint64) bool {
		return lifeOf(incarnation) == life
	})
}

// Leads reports whether the machine is the CM.
func (l Lives) Leads() bool { return l.m.membership.Configuration().CM == l.m.id }

// lifeOf returns 32 bits of an incarnation, which is random.
func lifeOf(incarnation uint64) uint32 { return uint32(incarnation ^ incarnation>>32) }
