//go:build cgo && linux && (amd64 || arm64)

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "path.h"
#include "section.h"
#include "thread.h"

static const uint64_t MAGIC = 0x32307361656c7366; // "fsleas02"

// BATCH is the number of messages passed to the kernel at a time: a system call costs more than
// everything else done with a message.
// LATE says when a beat is so late that the machine may be hung soon: when the beat is older than the
// lease time minus 1/LATE of it. A beat in time is younger, and MARGIN in core.c allows a beat to be older.
// STARVED is the number of lease times by which a machine may be late for lack of a processor.
// ROUNDS bounds how many batches are received in a row. PAUSE is how long a thread does not listen
// after a batch of datagrams that did not count, and once REFUSED_MAX datagrams have not counted no
// more are received in a row: their sender must not keep the processor busy at the highest priority.
// REPORT is the least time between two reports of such datagrams.
enum { STACK_BYTES = 256 << 10, BATCH = 16, LATE = 4, STARVED = 8, ROUNDS = 64, PAUSE = 1000000, REFUSED_MAX = 8 * BATCH, LINE_ROOM = 256 };
static const int64_t REPORT = 10000000000, LENGTH_MAX = 60000000000, FOREVER = (int64_t)1 << 62;

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

// Messages being sent or received, with the structures that the kernel needs.
struct lease_batch {
	struct lease_datagram datagrams[BATCH]; // between processes of one host only their messages
	union lease_address addresses[BATCH];
	struct iovec parts[BATCH];
	struct mmsghdr headers[BATCH];
};

struct lease_thread {
	struct lease_core core; // guarded by mu
	pthread_mutex_t mu;     // priority inheritance: Go's threads hold it briefly
	pthread_t thread;
	int socket, wake, event; // wake ends the thread's poll
	int reminder; // eventfd, written when a beat is due
	int realtime, stop;
	int unpinned; // errno if memory is not pinned, otherwise 0
	int room; // number of messages that the kernel queues for the socket
	uint64_t incarnation;
	uint8_t lowest, highest; // versions of the protocol
	char name[64];
	void *stack;
	int64_t *valid;      // core.valid, published
	const int64_t *beat; // core.beat is read from it
	int64_t starved;     // when the machine was last late for lack of a processor
	// Machines that have expired and that Go has not taken yet.
	uint16_t expired[LEASE_MEMBERS_MAX], found[LEASE_MEMBERS_MAX];
	int expired_n;
	struct lease_batch in, out;
	// The fields below are for a line only.
	int line; // 1 if the socket is one
	struct lease_path *paths;
	int paths_n;
	int64_t keyed, unsealed, told; // lease times: if all peers have keys, if not, and the CM's; 0 is unknown
	int64_t settles;               // until then peers that have not been heard get time to exchange keys; 0 if all have had it
	int64_t hurries;               // until then the CM asks as often as for short leases: see hurry
	struct lease_message post[LEASE_MEMBERS_MAX];
	int post_n;
	uint64_t verdicts[LEASE_VERDICTS];
	int64_t reported; // when datagrams that do not count were last reported
	int refused;      // datagrams that did not count since the last step
};

IN_SECTION int64_t lease_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Writes an abstract address: it leaves no file behind, and the kernel frees it when the process
// ends.
static socklen_t address(struct sockaddr_un *a, const char *name, uint16_t machine) {
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%s/%u", name, machine);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

IN_SECTION static void stamp(struct lease_thread *t, struct lease_peer to, struct lease_message *m) {
	m->magic = MAGIC;
	m->from = t->core.self;
	m->from_incarnation = t->incarnation;
	m->lowest = t->lowest;
	m->highest = t->highest;
	m->to = to.machine;
	m->to_incarnation = to.incarnation;
}

// Returns the path to a machine, or NULL.
IN_SECTION static struct lease_path *path_of(struct lease_thread *t, uint16_t machine) {
	for (int i = 0; i < t->paths_n; i++)
		if (t->paths[i].machine == machine)
			return &t->paths[i];
	return 0;
}

// Completes a message, and stores its receiver's address. Returns the address's length, or 0 if there is
// no key for the receiver.
IN_SECTION static socklen_t direct(struct lease_thread *t, struct lease_peer to, struct lease_datagram *d, union lease_address *a) {
	stamp(t, to, &d->message);
	if (!t->line)
		return address(&a->local, t->name, to.machine);
	struct lease_path *p = path_of(t, to.machine);
	if (!p || !p->sealed)
		return 0;
	lease_seal(p, t->core.length, d);
	*a = p->address;
	return p->bytes;
}

IN_SECTION static void signal_event(int fd) {
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof one);
}

// Leaves a message to Go. The message is lost if Go has not taken the former ones.
IN_SECTION static void post(struct lease_thread *t, const struct lease_message *m) {
	if (t->post_n < LEASE_MEMBERS_MAX)
		t->post[t->post_n++] = *m;
	signal_event(t->event);
}

// A message that cannot be sent is lost; the next one follows soon.
IN_SECTION static void answer(struct lease_thread *t, struct lease_peer to, struct lease_datagram *d) {
	union lease_address a;
	socklen_t n = direct(t, to, d, &a);
	if (n == 0)
		post(t, &d->message);
	else
		(void)!sendto(t->socket, d, t->out.parts[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL, &a.any, n);
}

// Sends the first n messages of the batch. A message that cannot be sent is lost.
IN_SECTION static void transmit(struct lease_thread *t, int n) {
	for (int sent = 0; sent < n;) {
		int more = sendmmsg(t->socket, t->out.headers + sent, n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += more > 0 ? more : 1;
	}
}

// Sends the CM's messages to all others.
IN_SECTION static void ask(struct lease_thread *t, int64_t now) {
	int n = 0;
	for (int i = 0; i < t->core.n; i++) {
		struct lease_datagram *d = &t->out.datagrams[n];
		d->message = lease_core_message(&t->core, now, i);
		socklen_t bytes = direct(t, t->core.relations[i].peer, d, &t->out.addresses[n]);
		if (bytes == 0)
			post(t, &d->message);
		else
			t->out.headers[n++].msg_hdr.msg_namelen = bytes;
		if (n == BATCH || i == t->core.n - 1) {
			transmit(t, n);
			n = 0;
		}
	}
}

// Returns how long a lease must last for one machine. Until a datagram has come from that machine, it may
// lack a key of this machine, and answer by goroutines.
IN_SECTION static int64_t length_with(struct lease_thread *t, const struct lease_path *p) {
	return p && p->sealed && p->heard > 0 ? t->keyed : MAX(t->keyed, t->unsealed);
}

// Returns 1 if a machine may be about to exchange keys. Meanwhile the machine does not lengthen the leases:
// if the holder of a longer lease fails, the others wait for its end, however soon the next is short again.
IN_SECTION static int is_settling(const struct lease_thread *t, const struct lease_path *p) { return t->settles != 0 && !(p && p->keyless); }

// Sets the lease time: the longer one while a peer has no key, because goroutines keep its leases. The
// others learn it from the CM.
IN_SECTION static void adapt(struct lease_thread *t) {
	if (!t->line)
		return;
	int64_t length = t->core.is_cm ? t->keyed : MAX(t->keyed, t->told);
	for (int i = 0; i < t->core.n; i++) {
		struct lease_path *p = path_of(t, t->core.relations[i].peer.machine);
		if (!is_settling(t, p))
			length = MAX(length, length_with(t, p));
	}
	if (t->core.is_cm && length > t->core.length)
		t->hurries = lease_now() + t->core.length;
	t->core.length = length;
}

// Makes the CM ask as often as for short leases for a while after leases have become longer. The leases
// granted before end sooner than longer ones are renewed: machines would be without a lease meanwhile, or
// be suspected for one lost message.
IN_SECTION static int hurry(struct lease_thread *t, int64_t now) {
	if (!t->core.is_cm || now >= t->hurries)
		return 0;
	if (now - t->core.asked >= t->keyed / LEASE_RENEWALS)
		t->core.asked = 0; // messages are due
	return 1;
}

// Ends the time for the exchange of keys if it is over.
IN_SECTION static void settle(struct lease_thread *t, int64_t now) {
	if (t->settles == 0 || now < t->settles)
		return;
	t->settles = 0;
	adapt(t);
}

// Takes note of the first datagram of a machine: from now on that machine gets no more time than any other.
IN_SECTION static void meet(struct lease_thread *t, uint16_t machine) {
	adapt(t);
	int64_t most = lease_now() + LEASE_GRACE * t->core.length;
	for (int i = 0; i < t->core.n; i++) {
		struct lease_relation *r = &t->core.relations[i];
		if (r->peer.machine == machine)
			r->patience = MIN(r->patience, most);
	}
}

// Returns 1 if another thread of the process is waiting for a processor. Only the kernel knows
// that. The function allocates nothing, because a stopped thread may hold malloc's lock.
IN_SECTION static int wants_processor(void) {
	char entries[4096], stat[256];
	int found = 0, tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), own = syscall(SYS_gettid);
	for (long n; tasks >= 0 && !found && (n = syscall(SYS_getdents64, tasks, entries, sizeof entries)) > 0;) {
		for (long at = 0; at < n && !found;) {
			struct dirent64 *d = (struct dirent64 *)(entries + at);
			at += d->d_reclen;
			if (d->d_name[0] == '.' || atoi(d->d_name) == own)
				continue;
			char name[32];
			snprintf(name, sizeof name, "%.20s/stat", d->d_name);
			int fd = openat(tasks, name, O_RDONLY | O_CLOEXEC);
			ssize_t bytes = fd < 0 ? 0 : read(fd, stat, sizeof stat - 1);
			if (fd >= 0)
				close(fd);
			stat[MAX(bytes, 0)] = 0;
			char *end = strrchr(stat, ')'); // end of the name; a blank and the state follow
			found = end && end[1] == ' ' && end[2] == 'R';
		}
	}
	if (tasks >= 0)
		close(tasks);
	return found;
}

// Reads the last beat. If it is late while threads wait for a processor, the machine is not hung
// but starved, and gets more time: evicting it would only give its work to the other machines.
IN_SECTION static void look(struct lease_thread *t) {
	int64_t beat = __atomic_load_n(t->beat, __ATOMIC_SEQ_CST), now = lease_now();
	int64_t age = now - MAX(beat, t->starved);
	if (beat != 0 && age >= t->core.length - t->core.length / LATE && now - beat < STARVED * t->core.length && wants_processor())
		t->starved = now;
	t->core.beat = beat == 0 ? 0 : MAX(beat, t->starved);
}

// Returns 1 if the sender of a message and this machine speak a common version.
IN_SECTION static int shares_version(const struct lease_thread *t, const struct lease_message *m) {
	uint8_t lowest = MAX(m->lowest, 1), highest = MAX(m->highest, 1);
	return lowest <= MAX(t->highest, 1) && MAX(t->lowest, 1) <= highest;
}

// Returns 1 if a datagram from another host counts.
IN_SECTION static int admits(struct lease_thread *t, int i) {
	struct lease_path *p;
	enum lease_verdict v = lease_open(t->paths, t->paths_n, &t->in.datagrams[i], t->in.headers[i].msg_len, &p);
	t->verdicts[v]++;
	if (v != LEASE_ADMITTED) {
		t->refused++;
		return 0;
	}
	if (p->heard++ == 0)
		meet(t, p->machine);
	return 1;
}

// Sets the lease time that the CM uses. Only the CM's latest datagram counts: an earlier one may have been
// held up.
IN_SECTION static void hear_length(struct lease_thread *t, const struct lease_datagram *d) {
	struct lease_path *p = path_of(t, d->message.from);
	if (t->core.is_cm || d->message.from != t->core.cm || d->length <= 0)
		return;
	if (!p || p->latest.key.number != d->key || p->latest.next != d->counter + 1)
		return;
	t->told = d->length < LENGTH_MAX ? d->length : LENGTH_MAX;
	adapt(t);
}

// Returns 1 if a received message is well formed, and comes from where it says.
IN_SECTION static int counts(struct lease_thread *t, int i) {
	if (t->line)
		return admits(t, i);
	return t->in.headers[i].msg_len == sizeof(struct lease_message) && t->in.datagrams[i].message.magic == MAGIC;
}

// Processes the messages that have arrived.
IN_SECTION static void receive(struct lease_thread *t) {
	struct lease_datagram reply;
	int n, rounds = 0;
	t->refused = 0;
	do {
		n = recvmmsg(t->socket, t->in.headers, BATCH, MSG_DONTWAIT | MSG_TRUNC, 0);
		for (int i = 0; i < n; i++) {
			struct lease_message *m = &t->in.datagrams[i].message;
			if (!counts(t, i) || m->to != t->core.self || m->to_incarnation != t->incarnation || !shares_version(t, m))
				continue;
			if (t->line)
				hear_length(t, &t->in.datagrams[i]);
			struct lease_peer from = {m->from, m->from_incarnation};
			if (lease_core_receive(&t->core, lease_now(), from, m, &reply.message))
				answer(t, from, &reply);
		}
	} while (n == BATCH && ++rounds < ROUNDS && t->refused < REFUSED_MAX);
}

// Tells Go now and then that there have been datagrams that do not count.
IN_SECTION static void report(struct lease_thread *t, int64_t now) {
	if (t->refused == 0 || (t->reported != 0 && now - t->reported < REPORT))
		return;
	t->reported = now;
	signal_event(t->event);
}

IN_SECTION static void publish(struct lease_thread *t) { __atomic_store_n(t->valid, t->core.valid, __ATOMIC_SEQ_CST); }

// Sends the messages that are due, reports expired machines to Go, and returns the time of the next
// call.
IN_SECTION static int64_t step(struct lease_thread *t) {
	int n, old = t->expired_n;
	int64_t now = lease_now();
	settle(t, now);
	int hurries = hurry(t, now);
	if (lease_core_tick(&t->core, now, t->found, &n))
		ask(t, now);
	for (int i = 0; i < n; i++) {
		int known = 0;
		for (int k = 0; k < t->expired_n; k++)
			known |= t->expired[k] == t->found[i];
		if (!known && t->expired_n < LEASE_MEMBERS_MAX)
			t->expired[t->expired_n++] = t->found[i];
	}
	publish(t);
	report(t, now);
	if (t->expired_n > old)
		signal_event(t->event);
	int64_t next = lease_core_next(&t->core, now);
	if (hurries)
		next = MIN(next, now + t->keyed / LEASE_RENEWALS); // counted from now: a machine that hangs has not asked for long
	return t->settles != 0 ? MIN(next, t->settles) : next;
}

// Reminds Go of the next beat, and returns the time of the next reminder. It comes with the first renewal after
// half a lease time, so that one waking of the processor does for both, or after two thirds without a renewal. A machine
// that has never beaten is not reminded.
IN_SECTION static int64_t remind(struct lease_thread *t, int64_t now) {
	int64_t beat = __atomic_load_n(t->beat, __ATOMIC_SEQ_CST);
	if (beat == 0)
		return FOREVER;
	if (now - beat < t->keyed / 2)
		return beat + t->keyed / 3 * 2;
	signal_event(t->reminder);
	return now + t->keyed / 2;
}

// Returns 1 if the thread wakes for messages. The CM does not: it finds the answers to its messages
// when it sends the next ones. It does wake if there are more answers than the kernel queues.
IN_SECTION static int listens(const struct lease_thread *t) { return !t->core.is_cm || t->core.n > t->room; }

IN_SECTION static void *run(void *arg) {
	struct lease_thread *t = arg;
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = t->wake, .events = POLLIN}};
	while (!__atomic_load_n(&t->stop, __ATOMIC_SEQ_CST)) {
		pthread_mutex_lock(&t->mu);
		look(t);
		receive(t);
		int64_t next = step(t);
		next = MIN(next, remind(t, lease_now()));
		fds[0].fd = listens(t) && t->refused == 0 ? t->socket : -1;
		int64_t now = lease_now(), wait = next - now;
		if (t->refused > 0 && wait > PAUSE)
			wait = PAUSE;
		pthread_mutex_unlock(&t->mu);
		struct timespec ts = {wait > 0 ? wait / 1000000000 : 0, wait > 0 ? wait % 1000000000 : 0};
		if (ppoll(fds, 2, &ts, 0) > 0 && fds[1].revents) {
			uint64_t n;
			(void)!read(t->wake, &n, sizeof n);
		}
	}
	signal_event(t->event);
	return 0;
}

// The section's ends, defined by the linker.
extern const char __start_farmsql_lease[], __stop_farmsql_lease[];

// Pins code, memory and stack. Returns 0, or errno if something is not pinned; the thread has
// touched that memory, so it normally stays.
static int pin(struct lease_thread *t) {
	uintptr_t page = sysconf(_SC_PAGESIZE), begin = (uintptr_t)__start_farmsql_lease & ~(page - 1);
	int err = mlock(t, sizeof *t) == 0 ? 0 : errno;
	if (t->paths && mlock(t->paths, LEASE_MEMBERS_MAX * sizeof *t->paths) != 0)
		err = errno;
	if (mlock(t->stack, STACK_BYTES) != 0)
		err = errno;
	if (mlock((void *)begin, (uintptr_t)__stop_farmsql_lease - begin) != 0)
		err = errno;
	return err;
}

static void *try_realtime(void *ok) {
	struct sched_param p = {.sched_priority = LEASE_PRIORITY};
	*(int *)ok = pthread_setschedparam(pthread_self(), SCHED_FIFO, &p) == 0;
	return 0;
}

int lease_may_realtime(void) {
	pthread_t p;
	int ok = 0;
	if (pthread_create(&p, 0, try_realtime, &ok) == 0)
		pthread_join(p, 0);
	return ok;
}

static void prepare(struct lease_batch *b, size_t bytes, int with_addresses) {
	for (int i = 0; i < BATCH; i++) {
		b->parts[i] = (struct iovec){&b->datagrams[i], bytes};
		b->headers[i].msg_hdr = (struct msghdr){.msg_iov = &b->parts[i], .msg_iovlen = 1};
		if (with_addresses)
			b->headers[i].msg_hdr.msg_name = &b->addresses[i];
	}
}

static int open_socket(struct lease_thread *t, uint16_t self) {
	struct sockaddr_un a;
	t->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->socket < 0)
		return -1;
	int bytes = 1 << 20; // room for a message from each of a thousand members
	(void)setsockopt(t->socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	return bind(t->socket, (struct sockaddr *)&a, address(&a, t->name, self));
}

// Makes the thread use a descriptor of its own for the line, because the owner may close the given one.
static int open_line(struct lease_thread *t, int line) {
	void *paths = mmap(0, LEASE_MEMBERS_MAX * sizeof *t->paths, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (paths == MAP_FAILED)
		return -1;
	t->paths = paths;
	t->socket = fcntl(line, F_DUPFD_CLOEXEC, 0);
	return t->socket < 0 ? -1 : 0;
}

// Returns the number of datagrams that the kernel queues for a socket; 0 if unknown.
static int queue_room(void) {
	int n = 0;
	FILE *f = fopen("/proc/sys/net/unix/max_dgram_qlen", "re");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

// Binds a lease thread to the last processor that it may use. The lease threads of a host wake at
// the same time, one after the other. On one processor that costs a third of the time that it takes
// on several, which have to wake each other. With real-time priority no thread waits longer for
// this processor than for another.
static void gather(pthread_t thread) {
	cpu_set_t may, last;
	if (sched_getaffinity(0, sizeof may, &may) != 0)
		return;
	int cpu = CPU_SETSIZE - 1;
	while (cpu > 0 && !CPU_ISSET(cpu, &may))
		cpu--;
	CPU_ZERO(&last);
	CPU_SET(cpu, &last);
	(void)pthread_setaffinity_np(thread, sizeof last, &last);
}

// Creates the thread with the process's signals blocked: Go's handler would run on this thread, at
// the highest priority, with code and memory that are not pinned. Signals that the thread's own
// instructions cause are not blocked, so that Go reports which instruction failed.
static int create_without_signals(struct lease_thread *t, const pthread_attr_t *attr) {
	sigset_t others, before;
	sigfillset(&others);
	const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		sigdelset(&others, own[i]);
	int err = pthread_sigmask(SIG_SETMASK, &others, &before);
	if (err)
		return err;
	err = pthread_create(&t->thread, attr, run, t);
	(void)pthread_sigmask(SIG_SETMASK, &before, 0); // restore the mask; this cannot fail
	return err;
}

static int start_thread(struct lease_thread *t, int want) {
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);
	if (err)
		return err;
	pthread_attr_setstack(&attr, t->stack, STACK_BYTES);
	err = create_without_signals(t, &attr);
	pthread_attr_destroy(&attr);
	if (!err)
		(void)pthread_setname_np(t->thread, LEASE_THREAD_NAME);
	if (!err && want) {
		struct sched_param p = {.sched_priority = LEASE_PRIORITY};
		t->realtime = pthread_setschedparam(t->thread, SCHED_FIFO, &p) == 0;
	}
	if (t->realtime)
		gather(t->thread);
	return err;
}

static void release(struct lease_thread *t) {
	int fds[] = {t->socket, t->wake, t->event, t->reminder};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (t->stack)
		munmap(t->stack, STACK_BYTES);
	if (t->paths)
		munmap(t->paths, LEASE_MEMBERS_MAX * sizeof *t->paths);
	pthread_mutex_destroy(&t->mu);
	munmap(t, sizeof *t);
}

// The arguments of start.
struct settings {
	const char *name; // with it, the thread opens a socket of its own; otherwise it uses line
	int line;
	uint16_t self;
	uint64_t incarnation;
	uint8_t lowest, highest;
	int64_t length, unsealed;
	int want;
	int64_t *valid;
	const int64_t *beat;
};

static struct lease_thread *start(const struct settings *s) {
	struct lease_thread *t = mmap(0, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (t == MAP_FAILED)
		return 0;
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&t->mu, &attr);
	pthread_mutexattr_destroy(&attr);
	t->core.self = s->self;
	t->core.length = t->keyed = s->length;
	t->unsealed = s->unsealed;
	t->incarnation = s->incarnation;
	t->lowest = s->lowest;
	t->highest = s->highest;
	t->valid = s->valid;
	t->beat = s->beat;
	t->line = !s->name;
	t->room = t->line ? LINE_ROOM : queue_room();
	size_t bytes = t->line ? sizeof(struct lease_datagram) : sizeof(struct lease_message);
	prepare(&t->in, bytes, 0);
	prepare(&t->out, bytes, 1);
	if (s->name)
		snprintf(t->name, sizeof t->name, "%s", s->name);
	t->socket = -1;
	t->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->reminder = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	void *stack = mmap(0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_POPULATE, -1, 0);
	t->stack = stack == MAP_FAILED ? 0 : stack;
	int failed = t->event < 0 || t->wake < 0 || t->reminder < 0 || !t->stack || (t->line ? open_line(t, s->line) : open_socket(t, s->self));
	int err = failed ? errno : 0;
	if (!err) {
		t->unpinned = pin(t);
		err = start_thread(t, s->want);
	}
	if (err) {
		release(t);
		errno = err;
		return 0;
	}
	return t;
}

struct lease_thread *lease_thread_start(const char *name, uint16_t self, uint64_t incarnation, uint8_t lowest, uint8_t highest, int64_t length, int want, int64_t *valid, const int64_t *beat) {
	struct settings s = {name, -1, self, incarnation, lowest, highest, length, length, want, valid, beat};
	return start(&s);
}

struct lease_thread *lease_thread_start_line(int line, uint16_t self, uint64_t incarnation, uint8_t lowest, uint8_t highest, int64_t length, int64_t unsealed, int want, int64_t *valid, const int64_t *beat) {
	struct settings s = {0, line, self, incarnation, lowest, highest, length, unsealed, want, valid, beat};
	return start(&s);
}

void lease_thread_stop(struct lease_thread *t) {
	__atomic_store_n(&t->stop, 1, __ATOMIC_SEQ_CST);
	signal_event(t->wake);
	pthread_join(t->thread, 0);
	release(t);
}

void lease_thread_configure(struct lease_thread *t, uint16_t cm, const struct lease_peer *members, int n) {
	pthread_mutex_lock(&t->mu);
	int64_t now = lease_now(), before = t->core.length;
	// The time for the first exchange with a machine depends on the length: use the longer one until the machine has been heard.
	for (int i = 0; t->line && i < n; i++) {
		if (members[i].machine == t->core.self || (cm != t->core.self && members[i].machine != cm))
			continue;
		int64_t length = length_with(t, path_of(t, members[i].machine));
		t->core.length = MAX(t->core.length, length);
		if (length > t->keyed)
			t->settles = now + t->keyed;
	}
	lease_core_configure(&t->core, now, cm, members, n);
	t->told = 0;
	t->core.length = before; // the length with which leases have been granted
	adapt(t);
	t->expired_n = 0;
	publish(t);
	pthread_mutex_unlock(&t->mu);
	signal_event(t->wake);
}

int lease_thread_realtime(const struct lease_thread *t) { return t->realtime; }
int lease_thread_unpinned(const struct lease_thread *t) { return t->unpinned; }
int lease_thread_eventfd(const struct lease_thread *t) { return t->event; }
int lease_thread_reminder(const struct lease_thread *t) { return t->reminder; }

int lease_thread_expired(struct lease_thread *t, uint16_t *machines, int max) {
	pthread_mutex_lock(&t->mu);
	int n = t->expired_n < max ? t->expired_n : max;
	memcpy(machines, t->expired, n * sizeof *machines);
	memmove(t->expired, t->expired + n, (t->expired_n - n) * sizeof *machines);
	t->expired_n -= n;
	pthread_mutex_unlock(&t->mu);
	return n;
}

int64_t lease_thread_outstanding(struct lease_thread *t) {
	pthread_mutex_lock(&t->mu);
	int64_t until = t->core.outstanding;
	pthread_mutex_unlock(&t->mu);
	return until;
}

int lease_thread_relations(struct lease_thread *t, struct lease_relation *r, int max) {
	pthread_mutex_lock(&t->mu);
	int n = t->core.n < max ? t->core.n : max;
	memcpy(r, t->core.relations, n * sizeof *r);
	pthread_mutex_unlock(&t->mu);
	return n;
}

// Returns the path to a machine, a new one if there is none. If there is no room it takes the path of a machine
// to which nothing is sent; it returns NULL if there is none.
static struct lease_path *add_path(struct lease_thread *t, uint16_t machine) {
	struct lease_path *p = path_of(t, machine);
	if (p)
		return p;
	if (t->paths_n < LEASE_MEMBERS_MAX)
		p = &t->paths[t->paths_n++];
	for (int i = 0; i < t->paths_n && !p; i++)
		if (!t->paths[i].sealed)
			p = &t->paths[i];
	if (p) {
		memset(p, 0, sizeof *p);
		p->machine = machine;
	}
	return p;
}

// Stores an address in the family of the socket, and returns its length. Returns 0 if the socket is of
// IPv4 and the address is not.
static socklen_t store(struct lease_thread *t, union lease_address *a, const uint8_t ip[16], uint16_t port, uint32_t scope) {
	union lease_address own;
	socklen_t n = sizeof own;
	memset(a, 0, sizeof *a);
	if (getsockname(t->socket, &own.any, &n) == 0 && own.any.sa_family == AF_INET) {
		if (!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)ip))
			return 0;
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(port);
		memcpy(&a->in.sin_addr, ip + 12, 4);
		return sizeof a->in;
	}
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons(port);
	a->in6.sin6_scope_id = scope;
	memcpy(&a->in6.sin6_addr, ip, 16);
	return sizeof a->in6;
}

void lease_thread_seal(struct lease_thread *t, uint16_t machine, const uint8_t ip[16], uint16_t port, uint32_t scope, const struct lease_key *key) {
	pthread_mutex_lock(&t->mu);
	struct lease_path *p = add_path(t, machine);
	if (p) {
		p->bytes = store(t, &p->address, ip, port, scope);
		p->sealer = *key;
		p->sent = p->heard = 0;
		p->sealed = p->bytes > 0;
		p->keyless = 0;
	}
	adapt(t);
	pthread_mutex_unlock(&t->mu);
	signal_event(t->wake);
}

void lease_thread_unseal(struct lease_thread *t, uint16_t machine, _Bool keyless) {
	pthread_mutex_lock(&t->mu);
	struct lease_path *p = keyless ? add_path(t, machine) : path_of(t, machine);
	if (p) {
		p->sealed = 0;
		p->keyless = keyless;
	}
	adapt(t);
	pthread_mutex_unlock(&t->mu);
	signal_event(t->wake);
}

void lease_thread_hand_out(struct lease_thread *t, uint16_t machine, const struct lease_key *key) {
	pthread_mutex_lock(&t->mu);
	struct lease_path *p = add_path(t, machine);
	if (p)
		lease_hand_out(p, key);
	pthread_mutex_unlock(&t->mu);
}

uint64_t lease_thread_heard(struct lease_thread *t, uint16_t machine) {
	pthread_mutex_lock(&t->mu);
	struct lease_path *p = path_of(t, machine);
	uint64_t n = p ? p->heard : 0;
	pthread_mutex_unlock(&t->mu);
	return n;
}

int lease_thread_post(struct lease_thread *t, struct lease_message *messages, int max) {
	pthread_mutex_lock(&t->mu);
	int n = t->post_n < max ? t->post_n : max;
	memcpy(messages, t->post, n * sizeof *messages);
	memmove(t->post, t->post + n, (t->post_n - n) * sizeof *messages);
	t->post_n -= n;
	pthread_mutex_unlock(&t->mu);
	return n;
}

int lease_thread_take(struct lease_thread *t, struct lease_peer from, const struct lease_message *m, struct lease_message *reply) {
	pthread_mutex_lock(&t->mu);
	look(t);
	if (t->line && !t->core.is_cm && from.machine == t->core.cm && !is_settling(t, path_of(t, from.machine))) {
		// The CM has no key of this machine, so the CM uses the longer time. Its next datagram corrects that.
		t->told = MAX(t->told, t->unsealed);
		adapt(t);
	}
	int is_reply = lease_core_receive(&t->core, lease_now(), from, m, reply);
	publish(t);
	pthread_mutex_unlock(&t->mu);
	return is_reply;
}

void lease_thread_verdicts(struct lease_thread *t, uint64_t counts[LEASE_VERDICTS]) {
	pthread_mutex_lock(&t->mu);
	memcpy(counts, t->verdicts, sizeof t->verdicts);
	pthread_mutex_unlock(&t->mu);
}

int64_t lease_thread_length(struct lease_thread *t) {
	pthread_mutex_lock(&t->mu);
	int64_t length = t->core.length;
	pthread_mutex_unlock(&t->mu);
	return length;
}
