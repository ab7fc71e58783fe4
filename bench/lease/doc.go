// Package lease measures how often leases run out although no machine has failed,
// by lease time and by the way of keeping leases: Figure 16 of SOSP'15 (section 6.5).
//
// Three machines, all in this process, exchange leases while goroutines that
// allocate keep all processors and the garbage collector busy. All lease times of
// a variant are measured at the same time, the variants one after the other. A lease
// that runs out counts once, at the machine that had granted it, until it is
// renewed again.
package lease
