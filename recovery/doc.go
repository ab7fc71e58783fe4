// Package recovery takes an instance from one configuration to the next when
// machines fail or join (SOSP'15 section 5). Its parts are packages of their own:
//
//	membership    agrees on the members: suspicion, the CM's seven steps from there to
//	              NEW-CONFIG-COMMIT, joining, restarting together, and the placement
//	              of regions by the CM                                              (5.1, 5.2)
//	transactions  drains the logs, and locks, replicates, votes on and decides the
//	              transactions that the failure cut short                           (5.3)
//	data          fills backups and rebuilds free lists, slowly                     (5.4, 5.5)
//
// Package farm connects them: membership tells transactions when the configuration changes, and
// both tell data when regions are active. Each is straight-line code on a clock.Clock that talks to
// other machines through rdma/call and READs, so that internal/sim can run it unchanged.
//
// This package holds what the three share: the steps at which tests interrupt them, the errors with
// which calls are refused, and the check whether a life of a machine is a member.
package recovery
