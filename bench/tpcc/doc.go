// Package tpcc is the benchmark TPC-C (standard specification, revision 5.11) for
// package bench, on the native API and over SQL.
//
// # What is by the specification
//
// All five transactions with their inputs (clause 2): NURand and its run-time
// constants, customers by last name in 60 of 100 cases, one remote line in a
// hundred, 15 of 100 payments from elsewhere. One New-Order in a hundred has an unused
// item, its last: all its other lines are entered and their stock is changed, and then
// it is rolled back (clause 2.4.2.3). The brand of each line is taken from
// I_DATA and S_DATA (clause 2.4.2.2). The nine tables with their
// cardinalities and contents (clauses 1.2, 4.3). The twelve consistency conditions
// (clause 3.3.2), which are checked after every run, and so is that all rows of warehouse,
// district, customer, stock and item are there, and no others: natively in each of the
// indexes that lead to them.
//
// # What is not
//
// There are no terminals: no keying and no thinking, so that the figures are no tpmC. A client
// draws the warehouse of each transaction from those of its machine. Delivery is done at once,
// in one transaction, instead of being queued. The mix is 45 New-Order, 43 Payment, 4 each of
// the rest, drawn independently. Columns that a terminal only shows, such as names, are read
// with their row, but not copied out on the native API. A New-Order that is rolled back counts
// as one that has ended, and as a miss. Condition 11 is about the initial state; here
// deliveries are counted with it. Config can make the population smaller, for tests; results
// say so.
//
// # Beside Silo's
//
// Silo's TPC-C (benchmarks/tpcc.cc), which others have taken over, has no New-Order
// that is rolled back, no brands, and no history by the specification's H_DATE (a
// counter of each thread is the time); it does not count S_ORDER_CNT and
// C_DELIVERY_CNT, and writes no OL_DIST_INFO; Order-Status takes one of a customer's
// first orders in place of the last; Delivery remembers where its last search for the
// oldest new order has ended. All of that is done here. Silo checks no consistency
// conditions after a run.
//
// # On the native API
//
// Rows are objects of fixed layout, found by 16 indexes: twelve hash tables and four
// B-trees (SOSP'15 section 6.2). They are partitioned by warehouse, each partition at
// one machine, where the rows' objects are, too; clients are at the machine of their
// warehouses. Items, which are never changed, are replicated to each partition
// (clause 1.4.6). Warehouse, district, stock and customer are partitioned vertically
// (clause 1.4.5), so that what is only read is apart from what is changed, and what
// New-Order changes from what Payment does. The lines of an order, which are always
// used together, are next to each other in one object (clause 1.4.1).
// All is read in transactions, but what Stock-Level counts (clause 2.8.2.3). Buckets,
// leaves and rows of several lines, orders or districts are asked for together before
// the first of them is read (txn.Tx.Fetch).
//
//	hash tables                          B-trees
//	warehouse, its year-to-date          new orders by number
//	district, its orders, year-to-date   orders by customer
//	customer, its data                   lines by order
//	stock, its data                      customers by last name
//	item, history, orders
package tpcc
