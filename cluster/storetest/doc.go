// Package storetest is the suite that each cluster.Store passes: one that keeps a configuration for
// machines of one host, and one that several hosts reach over a network, whose faults the suite
// causes.
//
//	func TestFileStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) *storetest.System { return &storetest.System{...} })
//	}
//
// Every test records what all machines asked and were told, and checks at the end that the history is
// linearizable. That is simple for a store, because a swap names the revision that it
// replaces and revisions only grow: see history.
package storetest
