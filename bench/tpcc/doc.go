// Package tpcc is the benchmark TPC-C (standard specification, revision 5.11) for
// package bench, on the native API and over SQL.
//
// # What follows the specification
//
// All five transactions run, with the specified inputs (clause 2): NURand and its run-time
// constants, customers by last name in 60 of 100 cases, one remote line in a hundred, and 15
// of 100 payments from elsewhere. One New-Order in a hundred has an unused item, its last: it
// enters all other lines and changes their stock, and then rolls back (clause 2.4.2.3). The
// brand of each line comes from I_DATA and S_DATA (clause 2.4.2.2). The nine tables have the
// specified cardinalities and contents (clauses 1.2, 4.3). Every run ends with a check of the
// twelve consistency conditions (clause 3.3.2). The check also requires all rows of warehouse,
// district, customer, stock and item, and no others: on the native API, in each of the indexes
// that lead to them.
//
// # What differs from it
//
// There are no terminals, hence neither keying nor thinking times: the figures are not tpmC.
// A client draws the warehouse of each transaction from those of its machine. Delivery runs at
// once, in one transaction, instead of being queued. The mix is 45 New-Order, 43 Payment, and 4
// of each other kind, drawn independently. The native API reads columns that a terminal only
// shows, such as names, with their row, but does not copy them out. A New-Order that rolls back
// counts as one that has ended, and as a miss. Condition 11 is about the initial state; here it
// includes deliveries. Config can make the population smaller, for tests; results say so.
//
// # Differences from Silo
//
// Silo's TPC-C (benchmarks/tpcc.cc), which others have taken over, leaves out several things
// that this package does. Its New-Orders never roll back, compute no brands, and write no
// OL_DIST_INFO. Its history has a counter of each thread in place of H_DATE. It does not count
// S_ORDER_CNT and C_DELIVERY_CNT. Its Order-Status takes one of a customer's first orders in
// place of the last. Its Delivery remembers where the last search for the oldest new order
// ended. Silo checks no consistency conditions after a run.
//
// # On the native API
//
// Rows are objects of fixed layout, found by 16 indexes: twelve hash tables and four
// B-trees (SOSP'15 section 6.2). The indexes are partitioned by warehouse. Each partition is at
// one machine, and so are the objects of its rows; clients run at the machine of their
// warehouses. Each partition has a copy of the items, which never change (clause 1.4.6).
// Warehouse, district, stock and customer are partitioned vertically (clause 1.4.5): columns
// that are only read are apart from those that change, and the columns that New-Order changes
// are apart from those that Payment changes. The lines of an order, which are always used
// together, are next to each other in one object (clause 1.4.1).
// All reads are part of a transaction, except those of the stock that Stock-Level counts
// (clause 2.8.2.3). Transactions fetch the buckets, leaves and rows of several lines, orders or
// districts together before they read the first of them (txn.Tx.Fetch).
//
//	hash tables                          B-trees
//	warehouse, its year-to-date          new orders by number
//	district, its orders, year-to-date   orders by customer
//	customer, its data                   lines by order
//	stock, its data                      customers by last name
//	item, history, orders
package tpcc
