// Package doctor examines a host for running farmsql: whether it has what `farmsql serve` uses, and
// what to change where it has not.
//
//	report := doctor.Examine(doctor.This(), plan)
//
// A [Plan] is what serve would do here. A [Host] answers a check's questions: /proc and /sys below a
// root, and a function for each thing that can only be found out by trying it. Tests give other
// roots and functions.
//
// Each check is a function of the two that returns one [Finding]. A check says that all is well
// only if it has seen that: what cannot be known, or is known only to root, is "not examined".
// Only things that farmsql uses are checked, and things that only machines of a cluster use only
// for them.
//
// A check may write a file to the data folder, or next to where that will be, and listens for a
// moment on the port of the plan; it leaves nothing behind.
package doctor
