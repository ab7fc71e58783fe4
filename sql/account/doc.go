// Package account keeps the users and roles of an instance with their grants, and decides what a
// user may do where go-mysql-server would ask for other privileges than MySQL.
//
//	CREATE USER, GRANT, ... ──► Execute ──► rows of the catalog, in the statement's transaction
//	                                              │
//	a client logs in    ──► Refresh   ─┐          ▼
//	a statement begins  ──► KeepFresh ─┴──► the copy in memory ──► go-mysql-server, Privileges
//
//	syntax tree ──► Note ──► Authorizer: authorized before it is planned
//
// The engines of one process share their Accounts; each has its own Privileges. Both are safe for
// concurrent use. The package knows nothing of sessions and plans: a function stands for
// go-mysql-server's execution of a statement.
package account
