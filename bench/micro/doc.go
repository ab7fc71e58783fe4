// Package micro measures the engine's single operations against the one cost
// that none of them can go below: a load that misses the cache and depends on
// the one before it.
//
// Each benchmark reports, besides nanoseconds, how many such misses it took
// ("misses"), counted with the latency that is measured in the same run, so that
// numbers from different machines, and from different days of a shared one, can
// be compared. Working sets are one that stays in the cache and one far beyond
// it; FARMSQL_BENCH_KEYS sets the size of the large indexes (1,000,000 if not
// set, and few with -short, which is only to see that everything runs).
//
//	go test -tags gms_pure_go -run '^$' -bench . -count 5 ./bench/micro
//
// Package report makes the table of docs/benchmarks.md of it.
package micro
