package cluster

// A Gap is between the configuration from which an instance went on when its configuration store was lost, After, and
// the first that followed, Before. Only machines that were lost, or followed these, can have had configurations in it:
// what was committed there is not known, so memory that has been in one is of another history. With the rest it would
// be a mixture of two.
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
