// Package recovery takes an instance from one configuration to the next when
// machines fail or join (SOSP'15 section 5), and brings the transactions to an end
// that this has cut short.
//
//	reconfigure*.go   Membership: who suspects whom, the CM's seven steps from a
//	                  suspicion to NEW-CONFIG-COMMIT, joining, restarted machines
//	                  that meet, regions allocated through the CM   (5.1, 5.2)
//	transactions*.go  Transactions: what the logs know is drained, locked,
//	                  replicated, voted on and decided              (5.3)
//	data.go           Refill: a new backup is filled, paced         (5.4)
//	allocator.go      Scan: free lists are rebuilt, paced           (5.5)
//	vote.go           Decide: the rule that both kinds of recovery share
//	restart.go        Restart: one process that has all machines' memory
//
// Package farm puts the first four together for a machine whose peers are other
// processes. Each is straight-line code on a clock.Clock that talks to other
// machines through rdma/call and READs, so that internal/sim runs it as it is.
//
// Restart is for an instance all of whose machines live and die in one process:
// then the steps of section 5.3 need no messages, for one process sees every log.
// It reads all logs, votes and decides by the same rule, applies, and clears the
// locks. Nothing is written to a log before all is applied, and applying again
// changes nothing, so that a crash in it is recovered from like any other.
package recovery
