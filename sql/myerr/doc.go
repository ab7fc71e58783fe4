// Package myerr is the one place where an error becomes MySQL's: its number, its
// SQLSTATE and the text that a client sees.
//
//	an error of          found in     becomes
//	this project         kinds.go     what its Kind says
//	storage              storage.go   a Kind, by its sentinel
//	go-mysql-server      engine.go    MySQL's number and text, by its kind
//	any of them          states.go    the SQLSTATE of its number
//
// Code that refuses a client's statement makes its error from a Kind: nothing else in sql and
// sql/wire names a number. Every error finally passes through Of, in the listener, in the
// handlers of a stored procedure and wherever a number is needed, so that all of them see the
// same error. In is like Of, for the error that ends a client's statement: some numbers depend on
// the statement.
//
// go-mysql-server often keeps only the text of an error. So Of also recognises errors by
// their text, as long as they have no MySQL number: storage's by the end of the text,
// go-mysql-server's by the constant parts of their messages. Errors that must keep their
// number on the way through go-mysql-server are converted to its own or MySQL's beforehand
// (Storage).
//
// Everything here may be called by several goroutines.
package myerr
