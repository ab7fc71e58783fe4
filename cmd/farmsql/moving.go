package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/protocol"
)

// This file has the common parts of drain, move and resize: does the instance support moves, and what do they wait for?

// movesPoll is the time between two looks at the progress.
const movesPoll = 200 * time.Millisecond

// movesQuiet is how long nothing must change before await prints what the moves wait for. Tests make it short.
var movesQuiet = 5 * time.Second

// checkMoves returns an error if the instance cannot move replicas. s is the status that one of its
// processes has returned. consequence completes the error of an instance whose machines are in one
// process.
func checkMoves(s farmsql.Status, consequence string) error {
	return checkSpeaks(s, protocol.Moves, "regions to move", consequence)
}

// checkSpeaks returns an error if the instance is a single process, or does not speak the version
// of the protocol that an operation needs. s is the status that one of its processes has returned.
// checkSpeaks names the members with an earlier program. The operation itself could not: it may ask
// such a member, whose program does not know the request.
func checkSpeaks(s farmsql.Status, needed protocol.Version, what, consequence string) error {
	switch {
	case s.Source == farmsql.StatusOfProcess:
		return fmt.Errorf("%w, and %s", farmsql.ErrNoCluster, consequence)
	case s.Configuration == 0:
		return fmt.Errorf("machine %d is starting, and knows no configuration yet: it %s", s.Machine, s.Starting)
	case s.Protocol == 0:
		return fmt.Errorf("machine %d runs a program that knows one version of the protocol, and version %d is needed for %s: start it, and all others of earlier programs, with this farmsql",
			s.Machine, needed, what)
	}
	var older []int
	for _, m := range s.Machines {
		if m.ProtocolMax < int(needed) {
			older = append(older, m.Machine)
		}
	}
	if s.Protocol >= int(needed) || len(older) == 0 {
		return nil
	}
	return fmt.Errorf("the instance speaks version %d of the protocol, and version %d is needed for %s: start %s with this farmsql",
		s.Protocol, needed, what, numbered("machine", older))
}

// numbered returns the numbers in words.
func numbered(what string, numbers []int) string {
	if len(numbers) != 1 {
		what += "s"
	}
	return what + " " + strings.Trim(fmt.Sprint(numbers), "[]")
}

// cmOf returns the number of the configuration manager. If that is not known, it returns the number
// of the machine that answered.
func cmOf(s farmsql.Status) int {
	for _, m := range s.Machines {
		if m.IsCM {
			return m.Machine
		}
	}
	return s.Machine
}

// movesAwait returns what moves, or regions that get or lose replicas, wait for. Only the CM knows
// everything that delays them.
func movesAwait(s farmsql.Status) string {
	if s.MovesAwait != "" {
		return s.MovesAwait
	}
	if cm := cmOf(s); cm != s.Machine {
		return fmt.Sprintf("machine %d, the configuration manager, whose status may say more", cm)
	}
	return "the configuration manager"
}
