// Package history checks that transactions were strictly serializable, from
// what their clients saw.
//
// A test runs transactions from many clients against the database. Each write has a value that no
// other write to that object has. The test records what each transaction read and wrote, when it
// began and ended, and how:
//
//	rec := history.NewRecorder()
//	// in each client:
//	t := rec.Begin("client 3")
//	t.Read(x, value)             // the value found in x; history.Initial if never written
//	t.Write(x, rec.Value())      // a unique value
//	t.Delete(x, rec.Value())     // a unique value that stands for: x is not there
//	t.Absent(x)                  // a lookup found no x; the transaction's only operation
//	t.Append(l, rec.Value())     // a unique value, appended to the list l, which it need not have read
//	t.ReadList(l, values)        // all elements of the list l
//	t.End(history.Committed)     // or Aborted, or Unknown if the client was not told
//	// afterwards:
//	if err := rec.Check(history.Options{}).Err(); err != nil {
//		t.Fatal(err)
//	}
//
// Every attempt is a transaction of its own: one that is retried after a
// conflict is recorded as aborted, and begun again.
//
// # What is checked
//
// The reads and writes, and the clock, determine which transactions must come before which in any
// serial execution (Adya's direct serialization graph):
//
//	wr   T1 wrote what T2 read
//	ww   T1 wrote what T2 replaced
//	rw   T1 read what T2 replaced
//	time T1 had ended before T2 began
//
// The history is strictly serializable exactly if the transactions have an order that agrees with
// all of these: if there is no cycle. For each group of transactions on cycles, one short cycle is
// reported, with the usual name of the anomaly. These are reported too: a committed transaction
// that read a value that was never written, or was written by an aborted transaction, or was
// overwritten by its own writer; a transaction that did not see its own writes, or read an object
// twice and saw two values; two transactions that replaced the same value (a lost update); and an
// element of a list that is missing, there twice, or at two places for two readers.
//
// A read of absence does not show which deletion it saw. It must have been possible at some
// moment of the read: absence.go says how exact that check is.
//
// Otherwise the check is exact, given the order of each object's writes. That order is known in
// one of three ways. Either a write carries the object's Version, as the engine
// numbers them; or the transaction has read the object before it wrote it, and
// then its write follows the write that it read; or the object is a list, and the longest read shows
// the order of its elements (lists.go). A write with none of these is an error in
// the test and is reported as one.
//
// Transactions whose outcome is Unknown count as committed if a counting transaction saw their
// writes, otherwise not at all. Aborted ones do not count, unless their reads were shown to
// somebody (Transaction.Shown, or Options.Opacity for all of them): then they must obey the same
// rules as a committed transaction without writes.
//
// # Cost
//
// The check takes time nearly linear in the number of operations. The order in time has a quadratic
// number of pairs; it is expressed by a chain of points in time: each transaction has an edge to the
// point of its end, and an edge from the last point before its beginning. A history of 100,000
// transactions takes less than a second. The search for a short cycle is bounded; in large groups it
// finds a short one, not always the shortest.
//
// Check does not change its input; a Recorder is safe for concurrent use, a
// transaction being recorded belongs to one goroutine.
package history
