// How lease messages reach machines of other hosts: see line.go. A path is what one machine knows
// of another: where it is, and the keys of both directions.
#ifndef FARMSQL_LEASE_PATH_H
#define FARMSQL_LEASE_PATH_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "thread.h"

// A datagram on the wire. code authenticates all fields before it. Its key has the number key; the
// receiver has handed that out to the sender and to nobody else. counter numbers the datagrams of a
// key. length is the lease time that the sender uses now.
struct lease_datagram {
	struct lease_message message;
	int64_t length;
	uint64_t key, counter;
	uint8_t code[16];
};

union lease_address {
	struct sockaddr any;
	struct sockaddr_un local;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

// An opener is a key that this machine has handed out, and which of its datagrams have come: bit i
// of seen stands for number next-1-i.
struct lease_opener {
	struct lease_key key;
	uint64_t next, seen;
};

struct lease_path {
	uint16_t machine;
	int sealed;             // there are a key and an address for datagrams to the machine
	_Bool keyless;          // the machine has answered that it hands out no key
	struct lease_key sealer;
	uint64_t sent;          // numbers the datagrams of the sealer
	uint64_t heard;         // datagrams that the machine has sent since the sealer is known
	// former is the last key before the latest with which a datagram has come. It still counts: datagrams sealed
	// with it may be on their way, and the sender may not have got the latest key.
	struct lease_opener latest, former;
	union lease_address address;
	socklen_t bytes;        // of the address
};

// Completes a datagram whose message is filled in.
void lease_seal(struct lease_path *p, int64_t length, struct lease_datagram *d);

// Checks a datagram of n bytes. *p is the path of its sender, if that is known.
enum lease_verdict lease_open(struct lease_path *paths, int paths_n, const struct lease_datagram *d, size_t n, struct lease_path **p);

// Hands out a key.
void lease_hand_out(struct lease_path *p, const struct lease_key *key);

#endif
