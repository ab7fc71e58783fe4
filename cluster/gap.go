package cluster

// A Gap says which identifiers an instance has skipped because its configuration store was
// lost. The instance went on from its copy of configuration After, and the next configuration
// was Before. Only machines that were lost, or that followed these, can have had configurations
// in between. Nobody knows what was committed in them, so memory that has been in one belongs
// to another history: together with the other memories it would be a mixture of two.
type Gap struct{ After, Before ID }

// Omits reports whether an identifier is in one of c's gaps.
func (c *Configuration) Omits(id ID) bool {
	for _, g := range c.Gaps {
		if id > g.After && id < g.Before {
			return true
		}
	}
	return false
}
