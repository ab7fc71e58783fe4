// Package costs says what a program's profiles are made of, in the words of the design:
// not by functions, of which a transaction calls hundreds, but by what they are for.
//
// A Profile is samples, each a stack of functions with a weight, such as nanoseconds of
// processor time. Costs counts each sample once, by this rule: if a function of the
// stack is among those that a cost has with all that they call, the outermost such
// decides; otherwise the innermost function that a cost has as its own. So the copy of
// a row counts as reading it and not as the transaction, and a cache miss in a lookup is
// found wherever lookups are made, but the work for other machines is one cost although
// it is made of the same functions.
//
// The table of costs (table.go) names functions as profiles do, without the module's
// path. Tests demand that the functions exist, so that none is forgotten when it is
// renamed, and that each package a benchmark is made of has a cost or a reason to have
// none, so that none is forgotten when it moves.
package costs
