// The functions of libibverbs that package verbs calls. Posts and polls need C, because libibverbs' header
// looks up the device's functions for them. The other functions are here to be close to these.

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/verbs.h>

// The layouts of request and completion in request.go.
struct fv_request {
	uint64_t pair, id, local, remote;
	uint32_t bytes, lkey, rkey;
	uint8_t op, flags;
	uint16_t refusal;
};

struct fv_completion {
	uint64_t id;
	uint32_t status, vendor, bytes, is_receive;
};

_Static_assert(sizeof(struct fv_request) == 48, "as in request.go");
_Static_assert(sizeof(struct fv_completion) == 24, "as in request.go");

enum { FV_READ, FV_WRITE, FV_WRITE_RING };           // wireOp
enum { FV_SIGNALLED = 1, FV_FENCED = 2, FV_INLINE = 4 }; // flags
enum { FV_CHAIN = 64 };                               // requests that are posted with one doorbell

// FV_RECEIVE marks the identifier of a receive.
#define FV_RECEIVE (1ull << 63)

// fv_fill makes a work request of a request.
static inline void fv_fill(const struct fv_request *r, struct ibv_send_wr *w, struct ibv_sge *s) {
	memset(w, 0, sizeof *w);
	w->wr_id = r->id;
	w->opcode = r->op == FV_READ ? IBV_WR_RDMA_READ : r->op == FV_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
	w->send_flags = (r->flags & FV_SIGNALLED ? IBV_SEND_SIGNALED : 0) | (r->flags & FV_FENCED ? IBV_SEND_FENCE : 0) | (r->flags & FV_INLINE ? IBV_SEND_INLINE : 0);
	w->wr.rdma.remote_addr = r->remote;
	w->wr.rdma.rkey = r->rkey;
	if (r->bytes > 0) {
		s->addr = r->local;
		s->length = r->bytes;
		s->lkey = r->lkey;
		w->sg_list = s;
		w->num_sge = 1;
	}
}

// fv_send posts requests, with one doorbell for up to FV_CHAIN adjacent ones of a queue pair. If a queue pair does
// not take a request, that request and all later ones of the pair have the reason in refusal. It returns the number of doorbells.
static inline int fv_send(struct fv_request *r, int n) {
	struct ibv_send_wr w[FV_CHAIN], *bad;
	struct ibv_sge s[FV_CHAIN];
	int from, i, k, rc, doorbells = 0;
	for (from = 0; from < n; from += k) {
		for (k = 0; k < FV_CHAIN && from + k < n && r[from + k].pair == r[from].pair; k++) {
			fv_fill(&r[from + k], &w[k], &s[k]);
			if (k > 0)
				w[k - 1].next = &w[k];
		}
		bad = NULL;
		doorbells++;
		rc = ibv_post_send((struct ibv_qp *)(uintptr_t)r[from].pair, w, &bad);
		if (rc == 0)
			continue;
		if (rc < 0)
			rc = errno ? errno : EIO;
		for (i = bad ? (int)(bad - w) : 0; i < k; i++)
			r[from + i].refusal = rc;
		// Refuse the later requests of the same pair: a card must not carry them out without this one.
		for (; from + k < n && r[from + k].pair == r[from].pair; k++)
			r[from + k].refusal = rc;
	}
	return doorbells;
}

// fv_receives posts receives without memory: rings bring no bytes with them.
static inline int fv_receives(struct ibv_srq *srq, int n) {
	struct ibv_recv_wr w[FV_CHAIN], *bad;
	while (n > 0) {
		int i, k = n < FV_CHAIN ? n : FV_CHAIN, rc;
		memset(w, 0, sizeof w);
		for (i = 0; i < k; i++) {
			w[i].wr_id = FV_RECEIVE;
			w[i].next = i + 1 < k ? &w[i + 1] : NULL;
		}
		rc = ibv_post_srq_recv(srq, w, &bad);
		if (rc != 0)
			return rc;
		n -= k;
	}
	return 0;
}

// fv_take polls for completions. It returns their number, or an error as a number below 0.
static inline int fv_take(struct ibv_cq *cq, struct fv_completion *d, int max) {
	struct ibv_wc wc[64];
	int i, n = ibv_poll_cq(cq, max < 64 ? max : 64, wc);
	for (i = 0; i < n; i++) {
		d[i].id = wc[i].wr_id & ~FV_RECEIVE;
		d[i].status = wc[i].status;
		d[i].vendor = wc[i].vendor_err;
		d[i].bytes = wc[i].byte_len;
		d[i].is_receive = (wc[i].wr_id & FV_RECEIVE) != 0;
	}
	return n;
}

// fv_unblock makes a descriptor return at once if there is nothing to read.
static inline int fv_unblock(int fd) {
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? errno : 0;
}

// fv_arm asks for an event with the next completion.
static inline int fv_arm(struct ibv_cq *cq) { return ibv_req_notify_cq(cq, 0); }

// fv_heard takes and acknowledges one event of a channel: 0, or EAGAIN if there is none, or another error.
static inline int fv_heard(struct ibv_comp_channel *channel) {
	struct ibv_cq *cq;
	void *context;
	if (ibv_get_cq_event(channel, &cq, &context) != 0)
		return errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

// An fv_event is an asynchronous event that has been acknowledged. Its queue may be gone before somebody looks at it.
struct fv_event {
	uint32_t type, pair;
	uint64_t cq, srq;
};

static inline int fv_event(struct ibv_context *c, struct fv_event *e) {
	struct ibv_async_event a;
	if (ibv_get_async_event(c, &a) != 0)
		return errno;
	memset(e, 0, sizeof *e);
	e->type = a.event_type;
	switch (a.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		e->pair = a.element.qp->qp_num;
		break;
	case IBV_EVENT_CQ_ERR:
		e->cq = (uintptr_t)a.element.cq;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		e->srq = (uintptr_t)a.element.srq;
		break;
	default:
		break;
	}
	ibv_ack_async_event(&a);
	return 0;
}

// fv_port asks for the state of a port. The header has a macro of the name, which Go cannot call.
static inline int fv_port(struct ibv_context *c, int port, struct ibv_port_attr *a) { return ibv_query_port(c, port, a); }

// fv_gid asks for a GID; kind is 2 if it is of RoCE v2.
static inline int fv_gid(struct ibv_context *c, int port, int index, uint8_t gid[16], int *kind) {
	struct ibv_gid_entry e;
	int rc = ibv_query_gid_ex(c, port, index, &e, 0);
	if (rc != 0)
		return rc < 0 ? -rc : rc;
	memcpy(gid, e.gid.raw, 16);
	*kind = e.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 1;
	return 0;
}

// fv_register registers memory for the use of others. Relaxed ordering is never asked for: a WRITE stores in rising order.
static inline struct ibv_mr *fv_register(struct ibv_pd *pd, void *at, size_t bytes) {
	return ibv_reg_mr(pd, at, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

static inline struct ibv_srq *fv_srq(struct ibv_pd *pd, int receives) {
	struct ibv_srq_init_attr a = {.attr = {.max_wr = receives, .max_sge = 1}};
	return ibv_create_srq(pd, &a);
}

static inline int fv_limit(struct ibv_srq *srq, int limit) {
	struct ibv_srq_attr a = {.srq_limit = limit};
	return ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT);
}

// fv_exchange posts requests and receives, and polls for completions. An event comes when fewer receives than limit are left.
static inline int fv_exchange(struct ibv_cq *cq, struct ibv_srq *srq, struct fv_request *r, int n, int receives, int limit, struct fv_completion *d, int max, int *doorbells) {
	int rc;
	*doorbells = fv_send(r, n);
	rc = fv_receives(srq, receives);
	if (rc != 0)
		return -rc;
	if (receives > 0)
		fv_limit(srq, limit); // a hint: without it, nothing is lost
	return fv_take(cq, d, max);
}

static inline struct ibv_qp *fv_pair(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq, int sends, int inlined) {
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = sends, .max_send_sge = 1, .max_inline_data = inlined},
	};
	return ibv_create_qp(pd, &a);
}

static inline struct ibv_qp *fv_post_pair(struct ibv_pd *pd, struct ibv_cq *cq, int receives, int sends) {
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1},
	};
	return ibv_create_qp(pd, &a);
}

// An fv_path is the way to another queue pair.
struct fv_path {
	uint32_t pair, first, own_first;
	uint8_t gid[16];
	uint16_t lid;
	uint8_t port, gid_index, traffic_class, mtu, reads, sends;
};

static inline void fv_way(struct ibv_ah_attr *a, const struct fv_path *p) {
	memset(a, 0, sizeof *a);
	a->is_global = 1;
	memcpy(a->grh.dgid.raw, p->gid, 16);
	a->grh.sgid_index = p->gid_index;
	a->grh.hop_limit = 64;
	a->grh.traffic_class = p->traffic_class;
	a->dlid = p->lid;
	a->port_num = p->port;
}

// Bounds of what a card does by itself. A packet without an answer is repeated after 4.096 us * 2^16 =
// 0.27 s, at most 6 times (7 would mean for ever, in rxe and in some cards). So a peer that is gone is
// noticed within 2 s, or within 8 s by a card that waits up to four times as long, which is allowed. A peer
// without receives is asked again after 41 ms, at most 6 times.
enum { FV_TIMEOUT = 16, FV_RETRIES = 6, FV_NOT_READY_RETRIES = 6, FV_NOT_READY_TIME = 24 };

// fv_connect makes a queue pair ready to carry out the other pair's requests, and, if that is wanted, to send.
static inline int fv_connect(struct ibv_qp *qp, const struct fv_path *p) {
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = p->port, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	int rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc != 0)
		return rc;
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = p->mtu;
	a.dest_qp_num = p->pair;
	a.rq_psn = p->first;
	a.max_dest_rd_atomic = p->reads;
	a.min_rnr_timer = FV_NOT_READY_TIME;
	fv_way(&a.ah_attr, p);
	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc != 0 || !p->sends)
		return rc;
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = p->own_first;
	a.timeout = FV_TIMEOUT;
	a.retry_cnt = FV_RETRIES;
	a.rnr_retry = FV_NOT_READY_RETRIES;
	a.max_rd_atomic = p->reads;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline int fv_fail(struct ibv_qp *qp) {
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

// fv_open_post makes a queue pair for datagrams ready.
static inline int fv_open_post(struct ibv_qp *qp, int port, uint32_t key) {
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = port, .qkey = key};
	int rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	if (rc != 0)
		return rc;
	a.qp_state = IBV_QPS_RTR;
	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE);
	if (rc != 0)
		return rc;
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = 0;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static inline struct ibv_ah *fv_route(struct ibv_pd *pd, const struct fv_path *p) {
	struct ibv_ah_attr a;
	fv_way(&a, p);
	return ibv_create_ah(pd, &a);
}

static inline int fv_post_send(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t pair, uint32_t key, uint64_t id, void *at, int bytes, uint32_t lkey) {
	struct ibv_sge s = {.addr = (uintptr_t)at, .length = bytes, .lkey = lkey};
	struct ibv_send_wr w = {.wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &s, .num_sge = 1}, *bad;
	w.wr.ud.ah = ah;
	w.wr.ud.remote_qpn = pair;
	w.wr.ud.remote_qkey = key;
	return ibv_post_send(qp, &w, &bad);
}

static inline int fv_post_receive(struct ibv_qp *qp, uint64_t id, void *at, int bytes, uint32_t lkey) {
	struct ibv_sge s = {.addr = (uintptr_t)at, .length = bytes, .lkey = lkey};
	struct ibv_recv_wr w = {.wr_id = id | FV_RECEIVE, .sg_list = &s, .num_sge = 1}, *bad;
	return ibv_post_recv(qp, &w, &bad);
}
