// The lease manager as a thread of C: see thread.go. The rules are those of
// core.go, line by line; TestSameRules compares the two.
#ifndef FARMSQL_LEASE_THREAD_H
#define FARMSQL_LEASE_THREAD_H

#include <stdint.h>

#define LEASE_MEMBERS_MAX 1024

// What tools that list threads call this one.
#define LEASE_THREAD_NAME "farmsql-lease"

// A message on the wire: addressed from life to life, then what the core says.
// Little endian, as are the processors that this is built for. lowest and highest are the
// versions of the protocol that the sender speaks; 0 and 0 stand for 1 and 1.
struct lease_message {
	uint64_t magic;
	uint16_t from, to;
	uint8_t kind, lowest, highest, zero;
	uint64_t from_incarnation, to_incarnation;
	int64_t sent, echo, length;
};

struct lease_peer {
	uint16_t machine;
	uint64_t incarnation;
};

struct lease_relation {
	struct lease_peer peer;
	int64_t request, arrived, granted, held, patience;
	int served, expired, spared;
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
// Returns 1 if the CM's messages are to be sent to all. Expired machines go to
// expired, which has room for all, and their number to n.
int lease_core_tick(struct lease_core *c, int64_t now, uint16_t *expired, int *n);
// The CM's message to the peer of its i-th relation.
struct lease_message lease_core_message(struct lease_core *c, int64_t now, int i);
int64_t lease_core_next(const struct lease_core *c, int64_t now);
// Returns 1 if reply is to be sent back.
int lease_core_receive(struct lease_core *c, int64_t now, struct lease_peer from, const struct lease_message *m, struct lease_message *reply);

struct lease_thread;

// Starts the thread. Returns NULL and sets errno if it cannot: EADDRINUSE if
// another process has the address. name is the prefix of abstract socket
// addresses, to which "/<machine>" is added. want is 1 for real-time priority. The
// thread writes until when the own lease is valid, in CLOCK_MONOTONIC, to *valid, and
// reads from *beat when the machine's workers last worked, atomically, until it is stopped. It
// speaks the versions from lowest to highest, and hears nobody who speaks none of them.
struct lease_thread *lease_thread_start(const char *name, uint16_t self, uint64_t incarnation, uint8_t lowest, uint8_t highest, int64_t length, int want, int64_t *valid, const int64_t *beat);
void lease_thread_stop(struct lease_thread *t);
void lease_thread_configure(struct lease_thread *t, uint16_t cm, const struct lease_peer *members, int n);
// 1 if the thread has real-time priority.
int lease_thread_realtime(const struct lease_thread *t);
// 0 if the thread's code and memory are pinned, else why not (errno).
int lease_thread_unpinned(const struct lease_thread *t);
// An eventfd that is written when machines have expired, or the thread has ended.
int lease_thread_eventfd(const struct lease_thread *t);
// Takes machines that have expired: returns how many of at most max.
int lease_thread_expired(struct lease_thread *t, uint16_t *machines, int max);
int64_t lease_thread_outstanding(struct lease_thread *t);
int lease_thread_relations(struct lease_thread *t, struct lease_relation *r, int max);
int64_t lease_now(void);
// 1 if threads of this process may have real-time priority.
int lease_may_realtime(void);

#endif
