// The lease manager as a C thread: see thread.go. It follows the rules of core.go line by line;
// TestSameRules compares the two.
#ifndef FARMSQL_LEASE_THREAD_H
#define FARMSQL_LEASE_THREAD_H

#include <stdint.h>

#define LEASE_MEMBERS_MAX 1024
#define LEASE_RENEWALS 5 // how often a lease is renewed in its time
#define LEASE_GRACE 2 // lease times that a machine has to begin the exchange

// The thread's name in tools that list threads.
#define LEASE_THREAD_NAME "farmsql-lease"

// The thread's real-time priority: the highest but one, which is left to the kernel's watchdogs.
#define LEASE_PRIORITY 98

// A message on the wire: addresses of two lives, then the core's message. It is little endian, as
// are the processors that this is built for. lowest and highest are the versions of the protocol
// that the sender speaks; 0 and 0 stand for 1 and 1.
struct lease_message {
	uint64_t magic;
	uint16_t from, to;
	uint8_t kind, lowest, highest, zero;
	uint64_t from_incarnation, to_incarnation;
	int64_t sent, echo, length;
};

// The magic of datagrams between hosts, "fsleaud1" as bytes: it tells the kernel which socket of a
// port a datagram is for.
#define LEASE_LINE_MAGIC 0x31647561656c7366

// The verdicts on a datagram from another host.
enum lease_verdict {
	LEASE_ADMITTED,
	LEASE_GARBAGE,     // no lease message
	LEASE_UNKNOWN_KEY, // sealed with no key of this life: of a former life, or of another cluster
	LEASE_FORGED,      // its code is wrong
	LEASE_REPLAYED,    // it has come before, or is older than what counts as overtaken
	LEASE_VERDICTS
};

// A key of one direction. No key has number 0.
struct lease_key {
	uint64_t number;
	uint8_t secret[16];
};

struct lease_peer {
	uint16_t machine;
	uint64_t incarnation;
};

// As the standings in core.go.
enum lease_standing { LEASE_TRUSTED, LEASE_SPARED, LEASE_EXPIRED };

struct lease_relation {
	struct lease_peer peer;
	int64_t request, arrived, granted, held, patience;
	int served;
	enum lease_standing standing;
};

struct lease_core {
	uint16_t self;
	int64_t length;
	uint16_t cm;
	int is_cm;
	int n;
	struct lease_relation relations[LEASE_MEMBERS_MAX], next[LEASE_MEMBERS_MAX];
	int64_t asked, wakes, outstanding, valid, beat;
	int hung;
};

void lease_core_configure(struct lease_core *c, int64_t now, uint16_t cm, const struct lease_peer *members, int n);
// Returns 1 if the CM's messages to all others are due. Stores the machines whose lease has run
// out in suspects, which has room for all, and their number in n.
int lease_core_tick(struct lease_core *c, int64_t now, uint16_t *suspects, int *n);
// Returns the CM's message to the peer of its i-th relation.
struct lease_message lease_core_message(struct lease_core *c, int64_t now, int i);
int64_t lease_core_next(const struct lease_core *c, int64_t now);
// Returns 1 if reply must be sent back.
int lease_core_receive(struct lease_core *c, int64_t now, struct lease_peer from, const struct lease_message *m, struct lease_message *reply);

struct lease_thread;

// Starts the thread. If it cannot, it returns NULL and sets errno: EADDRINUSE if another process
// has the address. name is the prefix of abstract socket addresses, to which "/<machine>" is added.
// want is 1 for real-time priority. Until it is stopped, the thread atomically writes *valid and
// reads *beat. *valid is the time in CLOCK_MONOTONIC when the machine's own lease ends, *beat the
// time when the machine's workers last worked. It speaks the versions from lowest to highest, and
// ignores machines that speak none of them.
struct lease_thread *lease_thread_start(const char *name, uint16_t self, uint64_t incarnation, uint8_t lowest, uint8_t highest, int64_t length, int want, int64_t *valid, const int64_t *beat);
void lease_thread_stop(struct lease_thread *t);
void lease_thread_configure(struct lease_thread *t, uint16_t cm, const struct lease_peer *members, int n);
// Returns 1 if the thread has real-time priority.
int lease_thread_realtime(const struct lease_thread *t);
// Returns 0 if the thread's code and memory are pinned, otherwise the reason (errno).
int lease_thread_unpinned(const struct lease_thread *t);
// Returns an eventfd that is written when machines have expired, or the thread has ended.
int lease_thread_eventfd(const struct lease_thread *t);
// Returns an eventfd that is written when the next beat is due.
int lease_thread_reminder(const struct lease_thread *t);
// Takes at most max expired machines, and returns their number.
int lease_thread_expired(struct lease_thread *t, uint16_t *machines, int max);
int64_t lease_thread_outstanding(struct lease_thread *t);
int lease_thread_relations(struct lease_thread *t, struct lease_relation *r, int max);
int64_t lease_now(void);
// Returns 1 if a thread of this process may have LEASE_PRIORITY. It starts a thread that tries.
int lease_may_realtime(void);

// The functions below are for a thread with a line.

// Starts a thread that exchanges messages over a UDP socket, line, in place of a socket of its own. It
// does not close line. It sends to machines for which lease_thread_seal has been called, and leaves
// messages to other machines to lease_thread_post. While it has a peer without a key, leases last
// unsealed nanoseconds. After a configuration, peers that may hand out a key first get the time of a
// lease to do so.
struct lease_thread *lease_thread_start_line(int line, uint16_t self, uint64_t incarnation, uint8_t lowest, uint8_t highest, int64_t length, int64_t unsealed, int want, int64_t *valid, const int64_t *beat);
// Makes datagrams to the machine go to this IPv6 or mapped IPv4 address, with this key, from now on.
void lease_thread_seal(struct lease_thread *t, uint16_t machine, const uint8_t ip[16], uint16_t port, uint32_t scope, const struct lease_key *key);
// Forgets key and address of a machine. keyless says that the machine has answered that it hands out no key.
void lease_thread_unseal(struct lease_thread *t, uint16_t machine, _Bool keyless);
// Makes datagrams from the machine count from now on if they are sealed with this key, or with the one before it.
void lease_thread_hand_out(struct lease_thread *t, uint16_t machine, const struct lease_key *key);
// Returns how many datagrams of the machine have counted since lease_thread_seal.
uint64_t lease_thread_heard(struct lease_thread *t, uint16_t machine);
// Takes at most max messages to machines without a key, and returns their number.
int lease_thread_post(struct lease_thread *t, struct lease_message *messages, int max);
// Processes a message that has not come over the socket. Returns 1 if reply must be sent back by the same way.
int lease_thread_take(struct lease_thread *t, struct lease_peer from, const struct lease_message *m, struct lease_message *reply);
// Returns the lease time that the thread uses now.
int64_t lease_thread_length(struct lease_thread *t);
// Stores how many datagrams each verdict has met.
void lease_thread_verdicts(struct lease_thread *t, uint64_t counts[LEASE_VERDICTS]);

#endif
