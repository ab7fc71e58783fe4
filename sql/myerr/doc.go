// Package myerr is the one place where an error becomes MySQL's: its number, its
// SQLSTATE and the text that a client sees.
//
//	an error of          found in     becomes
//	this project         kinds.go     what its Kind says
//	storage              storage.go   a Kind, by its sentinel
//	go-mysql-server      engine.go    MySQL's number and text, by its kind
//	any of them          states.go    the SQLSTATE of its number
//
// Code that refuses something for a client makes its error of a Kind: nothing else in
// sql and sql/wire names a number. Of is what everything goes through at the end, in
// the listener, in the handlers of a stored procedure and wherever a number is asked
// for, so that all of them see the same; In is Of for a client that waits for the end
// of a statement, on which some numbers depend.
//
// go-mysql-server often keeps no more than the text of an error. So Of recognises errors
// by their text, too, as long as they have no number of MySQL's: storage's by what the text
// ends with, go-mysql-server's by the constant parts of their messages. Errors that must
// not lose their number on their way through it are made go-mysql-server's or MySQL's
// beforehand (Storage).
//
// Everything here may be called by several goroutines.
package myerr
