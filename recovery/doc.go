// Package recovery takes an instance from one configuration to the next when
// machines fail or join (SOSP'15 section 5). Its parts are packages of their own:
//
//	membership    who is a member: suspicions, the CM's seven steps from a suspicion to
//	              NEW-CONFIG-COMMIT, joining, restarted machines that meet, regions
//	              allocated through the CM                                          (5.1, 5.2)
//	transactions  what the logs know of transactions that were cut short is drained,
//	              locked, replicated, voted on and decided                          (5.3)
//	data          a backup is filled, and free lists are rebuilt, paced             (5.4, 5.5)
//
// Package farm connects them: membership tells transactions when the configuration changes, and
// both tell data when regions are active. Each is straight-line code on a clock.Clock that talks to
// other machines through rdma/call and READs, so that internal/sim can run it unchanged.
//
// This package holds what they share: the steps at which tests interrupt them, the errors with
// which calls are refused, and which life of a machine is a member.
package recovery
