// Package micro measures the engine's single operations in units of a cost that none of them
// avoids: a load that misses the cache and depends on the one before it. Besides nanoseconds, each
// benchmark reports how many such misses take the same time ("misses"). The same run measures the
// latency of a miss. So numbers from different machines can be compared, and from different days of
// a shared machine. One working set fits the cache, the other is far larger; FARMSQL_BENCH_KEYS
// sets the size of the large indexes (1,000,000 by default; few with -short, which only checks that
// everything runs).
//
//	go test -tags gms_pure_go -run '^$' -bench . -count 5 ./bench/micro
//
// Package report turns the output into a table of docs/benchmarks.md.
package micro
