// Package shapes measures farmsql beside MariaDB, one kind of statement at a time. A shape is a
// kind of statement as applications and object-relational mappers send it. Each is sent as text
// and prepared.
//
// Both servers are processes of this computer, with their data on a tmpfs, and have the same rows. Three
// steps follow each other:
//
//  1. Each shape is executed some times with the same parameters at both servers, and what they
//     answer is compared: rows, rows affected, numbers of inserted rows. Then all tables are compared.
//     A shape whose answers differ is wrong, and one that fails is failed: neither is measured.
//  2. Shapes are measured in rounds. In each round a shape has a turn at either server, which goes
//     first alternately. A turn is bounded in time, so that the number of executions adapts.
//  3. A figure is the median of its rounds.
//
// The processor time of a statement is that of the server's process, by its processor clock. It
// includes all threads, garbage collection and the server's background work. Other users of the
// computer hardly affect it. The latency is that of one connection, and includes the client.
//
// The shapes are in shapes.txt, the tables in tables.sql, the rows in data.go.
package shapes
