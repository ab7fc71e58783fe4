// Package tpch measures the 22 queries of TPC-H at farmsql beside MariaDB.
//
// Both servers are processes of this computer, with their data on a tmpfs, and have the same rows. Each
// round has a turn at either server for each query, which goes first alternately. A turn is one execution
// on a connection of its own. The first round is shown apart: in it a server plans the queries. The figure
// of a query is the median of the other rounds. The result of each execution is compared with MariaDB's
// first, row by row, with the names of its columns; of values that are a DOUBLE at one of the servers,
// digits beyond the ninth may differ. A query whose results differ, or that fails or takes too long at
// one of the servers, has no figures.
//
// The processor time is that of the server's process, as in package shapes, and includes its other threads.
//
// The queries are in queries.sql, with the values that the standard gives for the validation of results, and
// the tables in tables.sql, each with its primary key and an index for each foreign key. The rows are in data.go: numbers, dates,
// keys and names are distributed as dbgen's, from another random sequence, so that the results are not
// those of the standard. Comments, and addresses, are words of dbgen's grammar in any order, and
// shorter. The words that queries look for are put into as many of them as dbgen does, but into at
// least one.
package tpch
