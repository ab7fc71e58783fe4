package farm

import "slices"

// Lives are those of an instance's members, as one of them knows them (catalog.Lives): a
// life is an incarnation, and the CM leads.
type Lives struct{ m *Member }

// Lives returns the lives that the machine knows of.
func (m *Member) Lives() Lives { return Lives{m} }

// Own is the machine's life.
func (l Lives) Own() uint32 { return lifeOf(l.m.Incarnation()) }

// Has says whether a life is one of a member.
func (l Lives) Has(life uint32) bool {
	return slices.ContainsFunc(l.m.membership.Configuration().Incarnation, func(incarnation uint64) bool {
		return lifeOf(incarnation) == life
	})
}

// Leads says whether the machine is the CM.
func (l Lives) Leads() bool { return l.m.membership.Configuration().CM == l.m.id }

// lifeOf has 32 bits of an incarnation, which is random.
func lifeOf(incarnation uint64) uint32 { return uint32(incarnation ^ incarnation>>32) }
