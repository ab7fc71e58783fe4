// Package tatp is the Telecom Application Transaction Processing benchmark as its
// description of 2009 defines it: four tables about the subscribers of a mobile telephone
// network, and seven transactions on them.
//
//	transaction                 share  succeeds  what it does
//	get subscriber data          35 %   100.0 %  reads a subscriber's row
//	get new destination          10 %    14.8 %  reads a facility and the forwardings for a time of day
//	get access data              35 %    62.5 %  reads a row of access information
//	update subscriber data        2 %    62.5 %  changes a bit of a subscriber and a field of a facility
//	update location              14 %   100.0 %  changes where a subscriber is, found by the number
//	insert call forwarding        2 %    31.3 %  adds a forwarding, found by the number
//	delete call forwarding        2 %    31.3 %  removes one
//
// Subscribers are drawn as the description says: some come more often than others.
// Transactions that find no row end as bench.ErrMiss. The shares that succeed follow from
// the description's rows and parameters. The share of get new destination is 14.8 % at first and
// 20.4 % in the long run, because inserted forwardings end at any hour; the
// description names 23.9 %, which its own rows and parameters do not give at any time.
// The other shares are the description's, and do not change.
//
// # Native
//
// As in SOSP'15 section 6.2, tables are hash tables, here with the rows inside:
// subscribers, their numbers (an index of its own), access information, facilities
// and forwardings, spread over all machines. The transactions that read one row are
// lock-free lookups. An update of a location is one field of one object: it is
// shipped to the object's primary. The others are transactions.
//
// # SQL
//
// The tables of the description, with its primary and foreign keys, in a database
// named tatp. Statements are prepared once for each client. A transaction of one
// statement is just that statement; the others are between START TRANSACTION and COMMIT.
//
// # What is checked
//
// The data are drawn from the seed, so that rows that must not change can be compared with the
// original ones. The rest must be what the clients may have made of it: each forwarding has its
// facility, the number of forwardings is the number loaded plus those inserted minus those deleted,
// and fields are in their ranges.
package tatp
