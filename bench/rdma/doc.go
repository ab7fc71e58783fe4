// Package rdma measures how fast the providers of package rdma carry out operations:
//
//   - READ, WRITE, WRITE with immediate and SEND, by size;
//   - batches, unsignalled operations, queues, and outstanding operations;
//   - random access, by the size of the memory (NSDI'14, Figure 4) and by the number of connections (Figure 5);
//   - messages beside READs (Figures 2 and 3), and a sequencer by messages (Design Guidelines, section 4.2).
//
// All machines are in this process, so both ends share its processors: the cost of one end is part
// of the other's figures. Machine 0 posts, the others have memory. Each row has, beside its rate,
// the calls, doorbells and requests of an operation, as the provider counts them (rdma.Counts).
// These counts are the same on every computer, and also hold for soft-RoCE, whose times say nothing
// of a card.
//
// There are no atomic operations, because package rdma has none. Where the papers compare with one,
// a READ of 8 bytes stands for it: on every network the READ is as cheap as a fetch-and-add, or
// cheaper.
package rdma
