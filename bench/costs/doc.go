// Package costs breaks a program's profiles down in the words of the design: not by
// functions, of which a transaction calls hundreds, but by their purpose.
//
// A Profile is a set of samples: stacks of functions with a weight, such as nanoseconds
// of processor time. Costs counts each sample once. If functions of the stack are in a
// list named all (Cost), the outermost of them decides; otherwise the innermost function in
// a list named own does. So copying a row counts as reading it and not as the transaction,
// and a cache miss in a lookup counts as a lookup wherever that is made; but the work
// for other machines is one cost, although it consists of the same functions.
//
// The table of costs (table.go) names functions as profiles do, without the module's path. Tests
// check that the functions exist, so that a renamed function is not forgotten. They also check that
// each package that a benchmark uses has a cost, or a reason to have none, so that a moved package
// is not forgotten.
package costs
