//go:build cgo && linux && (amd64 || arm64)

#include "thread.h"
#include "section.h"

// Constants as in core.go.
enum { RENEWALS = LEASE_RENEWALS, BEGINNINGS = 50, DRIFT = 32, GRACE = LEASE_GRACE, AGAIN = 2, MARGIN = 8 };
enum { GRANT_REQUEST = 1, GRANT = 2 };
static const int64_t FOREVER = (int64_t)1 << 62;

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

static inline int same(struct lease_peer a, struct lease_peer b) { return a.machine == b.machine && a.incarnation == b.incarnation; }

IN_SECTION static int64_t majority(const struct lease_core *c) {
	int need = (c->n + 1) / 2;
	if (need == 0)
		return FOREVER;
	int64_t best = 0;
	for (int i = 0; i < c->n; i++) {
		int64_t t = c->relations[i].held;
		int n = 0;
		if (t <= best)
			continue;
		for (int k = 0; k < c->n; k++)
			n += c->relations[k].held >= t;
		if (n >= need)
			best = t;
	}
	return best;
}

IN_SECTION static void renew_valid(struct lease_core *c, int is_member) {
	if (!is_member)
		c->valid = 0;
	else if (c->is_cm)
		c->valid = majority(c);
	else
		c->valid = c->n > 0 ? c->relations[0].held : 0;
}

IN_SECTION static struct lease_relation continued(const struct lease_core *c, int64_t now, uint16_t cm, struct lease_peer p) {
	struct lease_relation r = {.peer = p};
	for (int i = 0; i < c->n; i++) {
		const struct lease_relation *was = &c->relations[i];
		if (!same(was->peer, p))
			continue;
		if (c->cm == cm && was->standing != LEASE_EXPIRED)
			return *was;
		r.granted = was->granted;
	}
	r.patience = now + GRACE * c->length;
	return r;
}

IN_SECTION void lease_core_configure(struct lease_core *c, int64_t now, uint16_t cm, const struct lease_peer *members, int n) {
	int is_member = 0, m = 0;
	for (int i = 0; i < n; i++)
		is_member |= members[i].machine == c->self;
	for (int i = 0; i < n; i++)
		if (is_member && members[i].machine != c->self && (cm == c->self || members[i].machine == cm))
			c->next[m++] = continued(c, now, cm, members[i]);
	for (int i = 0; i < c->n; i++) {
		int goes_on = 0;
		for (int k = 0; k < m; k++)
			goes_on |= same(c->next[k].peer, c->relations[i].peer);
		if (!goes_on)
			c->outstanding = MAX(c->outstanding, c->relations[i].granted);
	}
	for (int i = 0; i < m; i++)
		c->relations[i] = c->next[i];
	c->n = m;
	c->cm = cm;
	c->is_cm = is_member && cm == c->self;
	c->asked = c->wakes = 0;
	renew_valid(c, is_member);
}

IN_SECTION static int64_t ends(const struct lease_core *c, const struct lease_relation *r) {
	int64_t held = r->held;
	if (c->is_cm)
		held += c->length / DRIFT * 2;
	else
		held = MAX(held, r->patience) + GRACE * c->length;
	return MAX(MIN(r->granted, held), r->patience);
}

IN_SECTION static int64_t interval(const struct lease_core *c, int64_t now) {
	int is_beginning = c->valid <= now;
	for (int i = 0; i < c->n; i++) {
		const struct lease_relation *r = &c->relations[i];
		is_beginning |= r->standing != LEASE_EXPIRED && (r->held <= now || !r->served);
	}
	return is_beginning ? c->length / BEGINNINGS : c->length / RENEWALS;
}

IN_SECTION static int64_t due(const struct lease_core *c, int64_t now) {
	int64_t i = interval(c, now);
	return c->asked - c->asked % i + i;
}

IN_SECTION static int is_late(const struct lease_core *c, int64_t now) {
	return c->wakes != 0 && now - c->wakes > c->length / RENEWALS;
}

IN_SECTION static int is_hung(const struct lease_core *c, int64_t now) {
	return c->beat != 0 && now - c->beat >= c->length - c->length / MARGIN;
}

IN_SECTION static void wait_for(const struct lease_core *c, struct lease_relation *r, int64_t now) {
	r->patience = MAX(r->patience, now + AGAIN * c->length / RENEWALS);
}

IN_SECTION static void revive(struct lease_core *c, int64_t now) {
	c->hung = 0;
	for (int i = 0; i < c->n; i++)
		wait_for(c, &c->relations[i], now);
}

IN_SECTION static int tick(struct lease_core *c, int64_t now, uint16_t *suspects, int *n) {
	int late = is_late(c, now);
	if (is_hung(c, now)) {
		c->hung = 1;
		return 0;
	}
	if (c->hung)
		revive(c, now);
	for (int i = 0; i < c->n; i++) {
		struct lease_relation *r = &c->relations[i];
		if (r->standing == LEASE_EXPIRED || now < ends(c, r))
			continue;
		if (late && r->standing == LEASE_TRUSTED) {
			r->standing = LEASE_SPARED;
			wait_for(c, r, now);
			continue;
		}
		r->standing = LEASE_EXPIRED;
		suspects[(*n)++] = r->peer.machine;
	}
	if (!c->is_cm || c->n == 0 || now < due(c, now))
		return 0;
	c->asked = now;
	return 1;
}

IN_SECTION int64_t lease_core_next(const struct lease_core *c, int64_t now) {
	if (is_hung(c, now))
		return now + c->length / RENEWALS;
	int64_t t = now + c->length;
	for (int i = 0; i < c->n; i++)
		if (c->relations[i].standing != LEASE_EXPIRED)
			t = MIN(t, ends(c, &c->relations[i]));
	if (c->is_cm && c->n > 0)
		t = MIN(t, due(c, now));
	return MAX(t, now);
}

IN_SECTION int lease_core_tick(struct lease_core *c, int64_t now, uint16_t *suspects, int *n) {
	*n = 0;
	int is_due = tick(c, now, suspects, n);
	c->wakes = lease_core_next(c, now);
	return is_due;
}

IN_SECTION static int64_t grant(struct lease_core *c, struct lease_relation *r) {
	int64_t length = c->length;
	if (c->is_cm)
		length = MAX(0, MIN(length, c->valid - r->arrived));
	r->granted = MAX(r->granted, r->arrived + c->length + c->length / DRIFT);
	return length;
}

IN_SECTION struct lease_message lease_core_message(struct lease_core *c, int64_t now, int i) {
	struct lease_relation *r = &c->relations[i];
	struct lease_message m = {.kind = GRANT_REQUEST, .sent = now, .echo = r->request};
	if (r->request != 0) {
		m.length = grant(c, r);
		r->served = m.length > 0;
	}
	return m;
}

IN_SECTION static void hold(struct lease_core *c, int64_t now, struct lease_relation *r, const struct lease_message *m) {
	if (m->echo == 0 || m->echo > now || m->echo < now - c->length || m->length < 0)
		return;
	int64_t length = MIN(m->length, c->length);
	r->held = MAX(r->held, m->echo + length - length / DRIFT);
	renew_valid(c, 1);
}

IN_SECTION int lease_core_receive(struct lease_core *c, int64_t now, struct lease_peer from, const struct lease_message *m, struct lease_message *reply) {
	struct lease_relation *r = 0;
	for (int i = 0; i < c->n && !r; i++)
		if (same(c->relations[i].peer, from))
			r = &c->relations[i];
	if (!r || (m->kind == GRANT_REQUEST) == c->is_cm)
		return 0;
	r->standing = LEASE_TRUSTED;
	hold(c, now, r, m);
	if (!c->is_cm && is_hung(c, now))
		return 0;
	r->request = m->sent;
	r->arrived = now;
	if (c->is_cm)
		return 0;
	*reply = (struct lease_message){.kind = GRANT, .sent = now, .echo = m->sent, .length = grant(c, r)};
	return 1;
}
