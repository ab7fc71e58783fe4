// Package rdma measures what the providers of package rdma make of operations: READ, WRITE, WRITE with immediate and SEND
// by size; batches; completions that are wanted or not; queues; outstanding operations; random access by the memory it touches
// (NSDI'14, Figure 4) and by connections (Figure 5); messages beside READs (Figures 2 and 3); a sequencer by messages (Design Guidelines, section 4.2).
//
// All machines are in this process, so both ends share its processors: what one end costs is in the other's figures. Machine 0 posts, the others
// have memory. Each row has, beside its rate, what an operation has cost of calls, doorbells and requests, as the provider
// counts them (rdma.Counts); that holds on every computer, and over soft-RoCE, too, whose times say nothing of a card.
//
// There are no atomic operations, because package rdma has none. Where one would compete, a READ of 8 bytes stands for it: on
// every network it is as cheap as a fetch-and-add, or cheaper.
package rdma
