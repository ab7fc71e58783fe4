//go:build cgo && linux && (amd64 || arm64)

#include <stddef.h>
#include <string.h>

#include "path.h"
#include "section.h"
#include "siphash.h"

static const uint64_t MAGIC = LEASE_LINE_MAGIC;

// How many datagrams may overtake one before it counts as a replay.
enum { WINDOW = 64, CODED = offsetof(struct lease_datagram, code) };

// No byte of a datagram is padding.
_Static_assert(sizeof(struct lease_datagram) == 96 && CODED == 80, "the layout of a datagram");

IN_SECTION void lease_seal(struct lease_path *p, int64_t length, struct lease_datagram *d) {
	d->message.magic = MAGIC;
	d->length = length;
	d->key = p->sealer.number;
	d->counter = p->sent++;
	lease_siphash(p->sealer.secret, d, CODED, d->code);
}

IN_SECTION static int is_authentic(const struct lease_opener *o, const struct lease_datagram *d) {
	uint8_t code[sizeof d->code], difference = 0;
	lease_siphash(o->key.secret, d, CODED, code);
	for (size_t i = 0; i < sizeof code; i++) // takes the same time whichever byte is wrong
		difference |= code[i] ^ d->code[i];
	return difference == 0;
}

// Returns 1 if the number is new, and notes it.
IN_SECTION static int admit(struct lease_opener *o, uint64_t number) {
	if (number == UINT64_MAX) // its successor has no number
		return 0;
	if (number >= o->next) {
		uint64_t ahead = number - o->next + 1;
		o->seen = (ahead < WINDOW ? o->seen << ahead : 0) | 1;
		o->next = number + 1;
		return 1;
	}
	uint64_t late = o->next - 1 - number;
	if (late >= WINDOW || o->seen >> late & 1)
		return 0;
	o->seen |= (uint64_t)1 << late;
	return 1;
}

IN_SECTION enum lease_verdict lease_open(struct lease_path *paths, int paths_n, const struct lease_datagram *d, size_t n, struct lease_path **p) {
	*p = 0;
	if (n != sizeof *d || d->message.magic != MAGIC)
		return LEASE_GARBAGE;
	for (int i = 0; i < paths_n && !*p; i++)
		if (paths[i].machine == d->message.from)
			*p = &paths[i];
	// Number 0 stands for no key.
	struct lease_opener *o = !*p || d->key == 0 ? 0 : (*p)->latest.key.number == d->key ? &(*p)->latest : (*p)->former.key.number == d->key ? &(*p)->former : 0;
	if (!o)
		return LEASE_UNKNOWN_KEY;
	if (!is_authentic(o, d))
		return LEASE_FORGED;
	return admit(o, d->counter) ? LEASE_ADMITTED : LEASE_REPLAYED;
}

void lease_hand_out(struct lease_path *p, const struct lease_key *key) {
	if (p->latest.next > 0) // otherwise the sender may not have got the latest key, and uses the former one
		p->former = p->latest;
	p->latest = (struct lease_opener){.key = *key};
}
