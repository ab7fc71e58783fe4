// Package simtest runs whole clusters in a simulated world (internal/sim), under
// a random workload and random faults, and checks what must always hold:
//
//   - the history of all transactions is strictly serializable, across every
//     crash: what was acknowledged is there, and stays (internal/history);
//   - no value is torn: each is written all over its object, or a half of it;
//   - no two machines claim to be the primary of a region in one configuration;
//   - once faults are healed, every machine commits again within a bound;
//   - while the healthy machines suffice, they make progress within bounds (bounds.go);
//   - no region is lost that some machine's memory has in full (copies.go);
//   - in the end all replicas of a region are equal, and Check of every store
//     finds no leak, orphan or lost entry.
//
// One seed determines everything: the options of the cluster, the workload, the
// faults and every interleaving. A Run(Draw(seed)) that fails will fail again, and two
// runs of a seed have the same hash.
//
//	Draw      options from a seed
//	Run       one run: set up, clients and faults, heal, check
//	Overlap   faults at any time, and in the end a core that goes on without others
//	Cluster   what is under test: members.go has machines (farm.Member), each a
//	          process of its own
//	Workload  clients that a layer above brings: internal/sqlsim has SQL sessions
package simtest
