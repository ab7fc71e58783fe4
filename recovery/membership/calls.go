package membership

import (
	"context"
	"encoding/binary"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// Kinds of calls, and codes of errors, of this package.
const (
	kindNewConfig = 16 + iota
	kindNewConfigCommit
	kindRegionsActive
	kindAllRegionsActive
	kindSuspect
	kindJoin
	kindHello
	kindAllocate
	kindPrepare
	kindAnnounce
	kindMapping
	kindFilled
	kindRoot
	kindSettled
	kindUnreachable
	kindForget
	kindApart
	kindExcluded
	kindRoom
	kindLeaving
	kindDrain
	kindRefuse
	kindMove
	kindResize
)

const codeFirst = 16

var known = []error{
	recovery.ErrNotCM, recovery.ErrNotMember, recovery.ErrSuperseded, errChanging, ErrTaken, ErrOtherCluster, ErrNoRegion, ErrLost,
	cluster.ErrNoRoom, cluster.ErrMoved, cluster.ErrUnreachable, region.ErrFull, context.DeadlineExceeded,
	nvram.ErrNoSpace, call.ErrOtherLife, ErrNeeded, ErrNotAwaited, ErrApart,
	cluster.ErrSettings, cluster.ErrCannotDrain, cluster.ErrCannotMove, errWaits, errUnheard, cluster.ErrCannotResize,
}

// handle registers the handlers of other machines' calls.
func (m *Machine) handle() {
	for kind, h := range map[uint8]call.Handler{ // any order
		kindNewConfig:        m.onNewConfig,
		kindNewConfigCommit:  m.onNewConfigCommit,
		kindRegionsActive:    m.onRegionsActive,
		kindAllRegionsActive: m.onAllRegionsActive,
		kindSuspect:          m.onSuspect,
		kindJoin:             m.onJoin,
		kindHello:            m.onHello,
		kindAllocate:         m.onAllocate,
		kindPrepare:          m.onPrepare,
		kindAnnounce:         m.onAnnounce,
		kindMapping:          m.onMapping,
		kindFilled:           m.onFilled,
		kindRoot:             m.onRoot,
		kindSettled:          m.onSettled,
		kindUnreachable:      m.onUnreachable,
		kindForget:           m.onForget,
		kindApart:            m.onApart,
		kindExcluded:         m.onExcluded,
		kindRoom:             m.onRoom,
		kindLeaving:          m.onLeaving,
		kindDrain:            m.onDrain,
		kindRefuse:           m.onRefuse,
		kindMove:             m.onMove,
		kindResize:           m.onResize,
	} {
		m.cfg.Endpoint.Handle(kind, h)
	}
}

func encodeID(id cluster.ID) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(id)) }

// decodeID returns 0, which no configuration has, if b does not hold an identifier.
func decodeID(b []byte) cluster.ID {
	if len(b) != 4 {
		return 0
	}
	return cluster.ID(binary.LittleEndian.Uint32(b))
}
