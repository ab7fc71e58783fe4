package wire

import "context"

// Session is what this package needs of a session beyond go-mysql-server's interface. A
// session belongs to one connection, and is used by one goroutine at a time.
type Session interface {
	// BeginStatement is called before every attempt to run a statement, and
	// before a statement is prepared or the current database changes.
	BeginStatement(s Statement)

	// EndStatement is called once after each attempt, with the engine's error, before anything
	// is sent to the client. The client receives the error that EndStatement returns.
	//
	// Outside an explicit transaction it returns nil only if the statement's
	// transaction has committed. Inside one it returns nil only if everything
	// read so far still holds, or, if shows is ShowsSuccess, everything that the
	// statement has read; a failed statement has its own writes undone, and a
	// conflict ends the whole transaction.
	EndStatement(ctx context.Context, shows Shown, err error) error

	// InTransaction reports whether an explicit transaction is open: one begun
	// by START TRANSACTION, or any with autocommit off.
	InTransaction() bool
}

// Statement tells a session what the engine does not tell the storage.
type Statement struct {
	Locking Locking
	// Aside is set for a statement that shows definitions, or is only prepared: it runs beside
	// the transaction that is open.
	Aside bool
}

// Locking is the locking clause of a SELECT.
type Locking uint8

const (
	LockNone   Locking = iota
	LockShare          // LOCK IN SHARE MODE
	LockUpdate         // FOR UPDATE
)

func (l Locking) String() string {
	return [...]string{"none", "share", "update"}[l]
}

// Shown is what the client sees of a statement that has not failed.
type Shown uint8

const (
	ShowsResult  Shown = iota // anything, such as rows, or variables that keep values of rows
	ShowsSuccess              // that rows were changed, and how many
)
