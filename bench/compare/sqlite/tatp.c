// TATP in an SQLite database in memory, through its C API, in one thread: what
// bench/tatp runs natively, on the same data and with the same transactions in the
// same order. Both are drawn as there, by Go's rand.PCG and rand.Rand, so that the
// same seed gives the same run; TestSQLite compares them.
//
//	tatp SUBSCRIBERS SEED WARM-UP SECONDS
//	tatp SUBSCRIBERS SEED TRANSACTIONS
//
// It prints a JSON object with the fields of farmsql bench --json that it knows.

#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sqlite3 *db;

static void fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	fputs("tatp: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	exit(1);
}

// must ends the program unless what SQLite answered is the wanted result.
static void must(int got, int want, const char *what) {
	if (got != want) fail("%s: %s", what, sqlite3_errmsg(db));
}

// Random numbers: math/rand/v2's PCG, and Rand.Uint64N.

typedef unsigned __int128 uint128;
typedef struct { uint128 state; } pcg;

static pcg seeded(uint64_t a, uint64_t b) { return (pcg){(uint128)a << 64 | b}; }

static uint64_t draw(pcg *p) {
	const uint128 mul = (uint128)2549297995355413924u << 64 | 4865540595714422341u;
	const uint128 inc = (uint128)6364136223846793005u << 64 | 1442695040888963407u;
	p->state = p->state * mul + inc;
	uint64_t hi = p->state >> 64, lo = p->state;
	hi ^= hi >> 32;
	hi *= 0xda942042e4dd58b5u;
	hi ^= hi >> 48;
	return hi * (lo | 1);
}

static uint64_t below(pcg *p, uint64_t n) {
	if ((n & (n - 1)) == 0) return draw(p) & (n - 1);
	uint128 product = (uint128)draw(p) * n;
	if ((uint64_t)product < n) {
		uint64_t least = -n % n;
		while ((uint64_t)product < least) product = (uint128)draw(p) * n;
	}
	return product >> 64;
}

static uint32_t positive(pcg *p) { return 1 + below(p, 0xffffffffu); }

static void fill(pcg *p, char *s, int length, char first, int kinds) {
	for (int i = 0; i < length; i++) s[i] = first + below(p, kinds);
}

enum { digits = 15 };

static void number_of(uint32_t id, char *number) {
	for (int i = digits - 1; i >= 0; i--, id /= 10) number[i] = '0' + id % 10;
}

// Statements, each prepared once.

enum {
	begin, commit, rollback,
	add_subscriber, add_access, add_facility, add_forward,
	select_subscriber, select_destination, select_access,
	update_bit, update_data_a, update_vlr,
	select_id, select_facilities, delete_forward,
	statements
};

#define TEN(a) a "1," a "2," a "3," a "4," a "5," a "6," a "7," a "8," a "9," a "10"

static const char *const text[statements] = {
	"BEGIN", "COMMIT", "ROLLBACK",
	"INSERT INTO subscriber VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	"INSERT INTO access_info VALUES (?,?,?,?,?,?)",
	"INSERT INTO special_facility VALUES (?,?,?,?,?,?)",
	"INSERT INTO call_forwarding VALUES (?,?,?,?,?)",
	"SELECT s_id, sub_nbr, " TEN("bit_") ", " TEN("hex_") ", " TEN("byte2_") ", msc_location, vlr_location FROM subscriber WHERE s_id = ?",
	"SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf WHERE sf.s_id = ? AND sf.sf_type = ? AND sf.is_active = 1 "
		"AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time",
	"SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ? AND ai_type = ?",
	"UPDATE subscriber SET bit_1 = ? WHERE s_id = ?",
	"UPDATE special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?",
	"UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?",
	"SELECT s_id FROM subscriber WHERE sub_nbr = ?",
	"SELECT sf_type FROM special_facility WHERE s_id = ?",
	"DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?",
};

static sqlite3_stmt *stmt[statements];

// next takes a statement's next step: true if there is a row.
static bool next(int s) {
	int got = sqlite3_step(stmt[s]);
	if (got != SQLITE_ROW) must(got, SQLITE_DONE, text[s]);
	return got == SQLITE_ROW;
}

// run binds integers to a statement and takes its first step.
static bool run(int s, int n, ...) {
	va_list args;
	va_start(args, n);
	for (int i = 0; i < n; i++) sqlite3_bind_int64(stmt[s], i + 1, va_arg(args, int64_t));
	va_end(args);
	return next(s);
}

#define RUN(s, ...) run(s, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), __VA_ARGS__)

// done ends a statement.
static void done(int s) { sqlite3_reset(stmt[s]); }

static void execute(int s) {
	run(s, 0);
	done(s);
}

static int64_t column(int s) { return sqlite3_column_int64(stmt[s], 0); }

static void bind_text(int s, int i, const char *t, int length) { sqlite3_bind_text(stmt[s], i, t, length, SQLITE_STATIC); }

// Settings by which SQLite is as fast as it can be here. What must be undone is kept
// in memory; without it ROLLBACK would not work.
static const char settings[] =
	"SQLITE_CONFIG_SINGLETHREAD, SQLITE_CONFIG_MEMSTATUS off, :memory:, journal_mode=MEMORY, synchronous=OFF, "
	"locking_mode=EXCLUSIVE, temp_store=MEMORY, foreign_keys=ON, composite keys WITHOUT ROWID, statements prepared once";

static const char schema[] =
	"PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=ON;"
	"CREATE TABLE subscriber (s_id INTEGER NOT NULL PRIMARY KEY, sub_nbr TEXT NOT NULL UNIQUE, " TEN("bit_") ", " TEN("hex_") ", "
	TEN("byte2_") ", msc_location INTEGER NOT NULL, vlr_location INTEGER NOT NULL);"
	"CREATE TABLE access_info (s_id INTEGER NOT NULL REFERENCES subscriber, ai_type INTEGER NOT NULL, data1 INTEGER NOT NULL, "
	"data2 INTEGER NOT NULL, data3 TEXT NOT NULL, data4 TEXT NOT NULL, PRIMARY KEY (s_id, ai_type)) WITHOUT ROWID;"
	"CREATE TABLE special_facility (s_id INTEGER NOT NULL REFERENCES subscriber, sf_type INTEGER NOT NULL, is_active INTEGER NOT NULL, "
	"error_cntrl INTEGER NOT NULL, data_a INTEGER NOT NULL, data_b TEXT NOT NULL, PRIMARY KEY (s_id, sf_type)) WITHOUT ROWID;"
	"CREATE TABLE call_forwarding (s_id INTEGER NOT NULL, sf_type INTEGER NOT NULL, start_time INTEGER NOT NULL, end_time INTEGER NOT NULL, "
	"numberx TEXT NOT NULL, PRIMARY KEY (s_id, sf_type, start_time), "
	"FOREIGN KEY (s_id, sf_type) REFERENCES special_facility (s_id, sf_type)) WITHOUT ROWID;";

static void open_database(void) {
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	must(sqlite3_open(":memory:", &db), SQLITE_OK, "opening");
	must(sqlite3_exec(db, schema, NULL, NULL, NULL), SQLITE_OK, "creating the tables");
	for (int s = 0; s < statements; s++)
		must(sqlite3_prepare_v3(db, text[s], -1, SQLITE_PREPARE_PERSISTENT, &stmt[s], NULL), SQLITE_OK, text[s]);
}

// Loading. The order in which numbers are drawn is that of bench/tatp/data.go.

static int64_t forwards; // in the table

// some puts k different numbers from 1 to n into chosen, ascending, and returns k.
static int some(pcg *p, int *chosen, int n, int k) {
	int count = 0;
	for (int i = 1; i <= n; i++)
		if ((int)below(p, n - i + 1) < k - count) chosen[count++] = i;
	return count;
}

static void load_facility(pcg *p, uint32_t id, int kind) {
	char letters[5], number[digits];
	int starts[3];
	bool active = below(p, 100) < 85;
	int error_cntrl = below(p, 256), data_a = below(p, 256);
	fill(p, letters, sizeof letters, 'A', 26);
	bind_text(add_facility, 6, letters, sizeof letters);
	RUN(add_facility, id, kind, active, error_cntrl, data_a);
	done(add_facility);
	int n = some(p, starts, 3, below(p, 4));
	for (int i = 0; i < n; i++) {
		int start = (starts[i] - 1) * 8, end = start + 1 + below(p, 8);
		fill(p, number, digits, '0', 10);
		bind_text(add_forward, 5, number, digits);
		RUN(add_forward, id, kind, start, end);
		done(add_forward);
	}
	forwards += n;
}

static void load_subscriber(uint64_t seed, uint32_t id) {
	pcg p = seeded(seed, id);
	char number[digits], letters[8];
	number_of(id, number);
	uint32_t bits = below(&p, 1 << 10), msc = positive(&p), vlr = positive(&p);
	for (int i = 0; i < 10; i++) {
		sqlite3_bind_int(stmt[add_subscriber], 3 + i, bits >> i & 1);
		sqlite3_bind_int(stmt[add_subscriber], 13 + i, below(&p, 16));
		sqlite3_bind_int(stmt[add_subscriber], 23 + i, below(&p, 256));
	}
	sqlite3_bind_int64(stmt[add_subscriber], 33, msc);
	sqlite3_bind_int64(stmt[add_subscriber], 34, vlr);
	bind_text(add_subscriber, 2, number, digits);
	RUN(add_subscriber, id);
	done(add_subscriber);

	int kinds[4], n = some(&p, kinds, 4, 1 + below(&p, 4));
	for (int i = 0; i < n; i++) {
		int data1 = below(&p, 256), data2 = below(&p, 256);
		fill(&p, letters, sizeof letters, 'A', 26);
		bind_text(add_access, 5, letters, 3);
		bind_text(add_access, 6, letters + 3, 5);
		RUN(add_access, id, kinds[i], data1, data2);
		done(add_access);
	}
	n = some(&p, kinds, 4, 1 + below(&p, 4));
	for (int i = 0; i < n; i++) load_facility(&p, id, kinds[i]);
}

// Transactions. Each returns whether it found what it is about.

static pcg mix;

static int which(void) { return 1 + below(&mix, 4); }
static int start_time(void) { return 8 * below(&mix, 3); }

// rows reads the rows of a statement after the first step, and says whether there
// was one. What a row holds is looked at in its last column.
static bool rows(int s, bool row) {
	bool found = row;
	int last = sqlite3_column_count(stmt[s]) - 1;
	for (; row; row = next(s)) sqlite3_column_blob(stmt[s], last);
	done(s);
	return found;
}

static bool get_subscriber_data(uint32_t id) { return rows(select_subscriber, RUN(select_subscriber, id)); }

static bool get_new_destination(uint32_t id) {
	int kind = which(), start = start_time(), end = 1 + below(&mix, 24);
	return rows(select_destination, RUN(select_destination, id, kind, start, end));
}

static bool get_access_data(uint32_t id) {
	int kind = which();
	return rows(select_access, RUN(select_access, id, kind));
}

// end commits a transaction that has found its rows, or undoes it.
static bool end(bool found) {
	execute(found ? commit : rollback);
	return found;
}

static bool update_subscriber_data(uint32_t id) {
	int kind = which(), bit = below(&mix, 2), data = below(&mix, 256);
	execute(begin);
	RUN(update_data_a, data, id, kind);
	done(update_data_a);
	if (sqlite3_changes(db) == 0) return end(false);
	RUN(update_bit, bit, id);
	done(update_bit);
	return end(true);
}

static bool update_location(uint32_t id) {
	char number[digits];
	uint32_t vlr = positive(&mix);
	number_of(id, number);
	bind_text(update_vlr, 2, number, digits);
	RUN(update_vlr, vlr);
	done(update_vlr);
	return true;
}

static int64_t by_number(uint32_t id) {
	char number[digits];
	number_of(id, number);
	bind_text(select_id, 1, number, digits);
	if (!run(select_id, 0)) fail("number %.*s is gone", digits, number);
	int64_t found = column(select_id);
	done(select_id);
	return found;
}

static bool insert_call_forwarding(uint32_t id) {
	int kind = which(), start = start_time(), end_time = 1 + below(&mix, 24);
	char number[digits];
	bool known = false;
	fill(&mix, number, digits, '0', 10);
	execute(begin);
	int64_t subscriber = by_number(id);
	for (bool row = RUN(select_facilities, subscriber); row; row = next(select_facilities))
		known |= column(select_facilities) == kind;
	done(select_facilities);
	if (!known) return end(false);
	int64_t values[] = {subscriber, kind, start, end_time};
	for (int i = 0; i < 4; i++) sqlite3_bind_int64(stmt[add_forward], i + 1, values[i]);
	bind_text(add_forward, 5, number, digits);
	int got = sqlite3_step(stmt[add_forward]);
	done(add_forward);
	if (got == SQLITE_CONSTRAINT) return end(false); // there is one already
	must(got, SQLITE_DONE, text[add_forward]);
	forwards++;
	return end(true);
}

static bool delete_call_forwarding(uint32_t id) {
	int kind = which(), start = start_time();
	execute(begin);
	int64_t subscriber = by_number(id);
	RUN(delete_forward, subscriber, kind, start);
	done(delete_forward);
	int n = sqlite3_changes(db);
	forwards -= n;
	return end(n > 0);
}

static const struct {
	const char *name;
	int share;
	bool (*run)(uint32_t id);
} kinds[] = {
	{"get subscriber data", 35, get_subscriber_data},
	{"get new destination", 10, get_new_destination},
	{"get access data", 35, get_access_data},
	{"update subscriber data", 2, update_subscriber_data},
	{"update location", 14, update_location},
	{"insert call forwarding", 2, insert_call_forwarding},
	{"delete call forwarding", 2, delete_call_forwarding},
};

enum { kinds_count = sizeof kinds / sizeof *kinds };

// Measuring.

static uint64_t counted[kinds_count], missed[kinds_count];

static double seconds(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static uint64_t spread(uint64_t subscribers) {
	return subscribers <= 1000000 ? 65535 : subscribers <= 10000000 ? 1048575 : 2097151;
}

static void transaction(uint64_t subscribers, uint64_t a) {
	int percent = below(&mix, 100), kind = 0;
	while (percent >= kinds[kind].share) percent -= kinds[kind++].share;
	uint64_t id = below(&mix, a + 1);
	id = (id | (1 + below(&mix, subscribers))) % subscribers + 1;
	counted[kind]++;
	missed[kind] += !kinds[kind].run(id);
}

// check compares the tables with what must be left.
static void check(uint64_t subscribers) {
	sqlite3_stmt *s;
	const char *query = "SELECT (SELECT COUNT(*) FROM subscriber WHERE CAST(sub_nbr AS INTEGER) = s_id AND bit_1 IN (0, 1) AND vlr_location > 0), "
		"(SELECT COUNT(*) FROM call_forwarding JOIN special_facility USING (s_id, sf_type) WHERE data_a BETWEEN 0 AND 255)";
	must(sqlite3_prepare_v2(db, query, -1, &s, NULL), SQLITE_OK, query);
	must(sqlite3_step(s), SQLITE_ROW, query);
	if ((uint64_t)sqlite3_column_int64(s, 0) != subscribers || sqlite3_column_int64(s, 1) != forwards)
		fail("inconsistent: %lld subscribers and %lld call forwardings, want %llu and %lld", sqlite3_column_int64(s, 0),
			sqlite3_column_int64(s, 1), (unsigned long long)subscribers, (long long)forwards);
	sqlite3_finalize(s);
}

static void print(double elapsed, double processor) {
	uint64_t all = 0;
	for (int i = 0; i < kinds_count; i++) all += counted[i];
	printf("{\"conditions\": {\"server\": \"%s\", \"settings\": \"%s\"},\n \"seconds\": %.3f,\n", sqlite3_libversion(), settings, elapsed);
	printf(" \"total\": {\"count\": %llu, \"perSecond\": %.1f},\n \"kinds\": [", (unsigned long long)all, all / elapsed);
	for (int i = 0; i < kinds_count; i++)
		printf("%s\n  {\"name\": \"%s\", \"count\": %llu, \"missed\": %llu}", i ? "," : "", kinds[i].name,
			(unsigned long long)counted[i], (unsigned long long)missed[i]);
	printf("],\n \"processorMicroseconds\": %.4f}\n", processor / all * 1e6);
}

int main(int argc, char **argv) {
	if (argc != 4 && argc != 5) fail("usage: tatp SUBSCRIBERS SEED (WARM-UP SECONDS | TRANSACTIONS)");
	uint64_t subscribers = strtoull(argv[1], NULL, 10), seed = strtoull(argv[2], NULL, 10), a = spread(subscribers);
	if (subscribers == 0) fail("%s subscribers", argv[1]);
	open_database();
	execute(begin);
	for (uint64_t id = 1; id <= subscribers; id++) load_subscriber(seed, id);
	execute(commit);

	pcg clients = seeded(seed, 1); // of which this is the first
	mix = seeded(draw(&clients), 0x7a7b);
	double now = seconds(CLOCK_MONOTONIC), since = now, processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
	if (argc == 4) {
		for (uint64_t n = strtoull(argv[3], NULL, 10); n > 0; n--) transaction(subscribers, a);
		now = seconds(CLOCK_MONOTONIC);
	} else {
		// The clock is read after each transaction, as farmsql bench does.
		for (double until = now + atof(argv[3]); now < until; now = seconds(CLOCK_MONOTONIC)) transaction(subscribers, a);
		memset(counted, 0, sizeof counted);
		memset(missed, 0, sizeof missed);
		since = now;
		processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
		for (double until = now + atof(argv[4]); now < until; now = seconds(CLOCK_MONOTONIC)) transaction(subscribers, a);
	}
	processor = seconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
	check(subscribers);
	print(now - since, processor);
	return 0;
}
