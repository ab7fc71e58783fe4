// Package farmsql is the embedded database: FaRM machines in this process, and
// SQL, MySQL's protocol and the native transactions on top of them.
//
//	db, err := farmsql.Open(farmsql.Config{Folder: "./farmsql-data"})
//	...
//	db.SQL()            // *sql.DB of database/sql, no network
//	db.Run(ctx, f)      // native transactions on objects, with db.Tree and db.Hash to find them
//	db.Serve(ctx, l)    // MySQL clients
//
// A program that only wants database/sql can import this package for its driver
// and open "farmsql" with the folder as the data source name.
//
// # What survives
//
// Every row is an object in non-volatile memory, which here is the mapped files of the data folder.
// On tmpfs, hugetlbfs or DAX, backed by a battery, this is the memory that the FaRM papers assume.
// On an ordinary disk committed transactions survive a killed process but NOT A POWER CUT or a
// crash of the operating system. Close the database before the computer goes down. If it was not
// closed, Open refuses the folder after a reboot; the error says how to go on.
//
// # Concurrency
//
// A DB and everything it returns may be used by many goroutines, except that a native transaction
// belongs to one. Transactions are optimistic and strictly serializable: one that conflicts with
// another fails with MySQL's error 1213, or outcome.ErrConflict natively, and the caller has to run it
// again. The database itself repeats statements outside of BEGIN.
package farmsql
