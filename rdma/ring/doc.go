// Package ring is a queue of records between one sender and one receiver, in
// memory of the receiver that the sender writes with RDMA: the transaction logs
// (in non-volatile memory) and the message queues (in volatile memory) of FaRM
// (NSDI'14 section 2, SOSP'15 section 3).
//
//	      control line      data
//	     +-----------+     +------------------------------------------------+
//	     | head ...  |     |   free   |frame|record|frame|record|frame| free |
//	     +-----------+     +------------------------------------------------+
//	                                  head                       tail
//
//	frame    | state 8 B | seal 8 B |
//	record   | payload, padded to a multiple of 8 |
//
// A position counts the bytes of the stream since the ring was made and never
// goes back; the byte at position p lies at offset p modulo the size of the
// data. A record is named by the position of the frame before it.
//
// # When a record counts as written
//
// The seal of the frame at position p is a function of p and of a random number of the ring
// (the nonce). It says that everything before p is complete. The frame's state says whether a
// record follows, and the record's length. To append, the sender writes one contiguous piece:
// the frame at the tail again, now with the length, then the payload, then a new frame that
// nothing follows. The last word of that piece is the new seal, and RDMA writes the last word
// last. So a receiver that finds the new seal finds the whole record, never one that is half
// written. A piece that reaches the end of the data is written in two parts, in order.
//
// Space need not be cleared between laps: a seal of an earlier lap, or payload bytes that look like
// a seal, differ from the seal that the receiver waits for. The receiver waits at a frame whose seal
// it has verified, so the state word that it polls must be either "no record" or "a record" of a
// possible length. Anything else is damage, and reported as ErrCorrupt. No content of a ring can make
// the receiver fail in another way.
//
// # Space
//
// Receiver.Poll returns records and Receiver.Free, later, frees their space, in order. The head
// lives in the ring's own memory, so a process that opens the ring after a restart finds every
// record that has not been freed, including those that were polled before. The sender learns of
// freed space lazily: each time half of the data has been freed the receiver writes its head to a
// word at the sender (the credit). A sender that cannot wait for the credit reads the head itself
// (Sender.Refresh).
//
// A transaction reserves space for all its records in a ring before it writes the first
// (Sender.Reserve), so that it cannot run out of space half way. Space returns how much a record
// takes.
//
// # Own machine
//
// A ring whose sender and receiver are the same machine involves no NIC: the
// Sender made by NewLocalSender stores to the memory and reads the head in it.
//
// A Sender and a Receiver each belong to one worker and are not safe for
// concurrent use; the two may run at the same time.
package ring
