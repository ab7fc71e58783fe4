package txn

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// ReserveBackups reserves storage for n bytes at off in every backup of a region, because a NIC's
// WRITE cannot report that a file system is full. This machine must be the region's primary. It
// fails with nvram.ErrNoSpace if one backup has no space. If a backup is lost, it asks the backups
// of the next configuration; reserving twice does no harm. It returns the configuration in which
// the backups that it asked became the region's replicas.
func (m *Machine) ReserveBackups(id region.ID, off, n uint64) (in uint32, err error) {
	behind := wait.Need{Lease: &m.Lease, Ctx: context.Background(), What: "all backups of region", Region: id}
	for {
		in, err := m.reserveBackups(id, off, n)
		switch {
		case errors.Is(err, errBehind):
			if err := behind.Pause(); err != nil {
				return 0, err
			}
		case !errors.Is(err, ErrInDoubt):
			return in, err
		}
	}
}

// errBehind: a backup has not yet applied the configuration that makes it a backup.
var errBehind = fmt.Errorf("%w: a new backup knows nothing of the region", ErrLost)

func (m *Machine) reserveBackups(id region.ID, off, n uint64) (in uint32, err error) {
	before := m.routes.Load()
	rt := before.Of(id)
	if rt == nil {
		return 0, m.noRegion(region.MakeAddr(id, uint32(off)))
	}
	arg := binary.LittleEndian.AppendUint64(nil, uint64(id))
	arg = binary.LittleEndian.AppendUint64(arg, off)
	arg = binary.LittleEndian.AppendUint64(arg, n)
	for _, b := range rt.Backups {
		_, err := m.shipTo(context.Background(), before, b, handlerReserve, arg)
		if errors.Is(err, ErrNoRegion) {
			err = cmp.Or(m.gone(), errBehind)
		}
		if err != nil {
			return 0, fmt.Errorf("backup at machine %d: %w", b, err)
		}
	}
	return uint32(rt.LastReplicaChange), nil
}

// handleReserve reserves storage for blocks of a replica. If the next configuration takes the
// replica from this machine, its memory is freed only after Freeze has returned, and Freeze waits
// for reservations that have begun.
func (m *Machine) handleReserve(_ context.Context, arg []byte) ([]byte, error) {
	if len(arg) != 24 {
		return nil, fmt.Errorf("%w: reservation of %d bytes", message.ErrBad, len(arg))
	}
	id, off, n := binary.LittleEndian.Uint64(arg), binary.LittleEndian.Uint64(arg[8:]), binary.LittleEndian.Uint64(arg[16:])
	m.reserving.RLock()
	defer m.reserving.RUnlock()
	var rt *route.Route
	if id == uint64(region.ID(id)) {
		rt = m.route(region.ID(id))
	}
	if rt == nil || rt.Local == nil || !rt.Has(m.cfg.ID) {
		return nil, fmt.Errorf("%w: reservation in region %d", ErrNoRegion, id)
	}
	mem := rt.Local.Memory()
	if off > mem.Size() || n > mem.Size()-off {
		return nil, fmt.Errorf("%w: reservation of %d bytes at %#x of region %d", message.ErrBad, n, off, id)
	}
	if m.Meets(clock.NoStorage) {
		return nil, fmt.Errorf("txn: region %d: %w", id, nvram.ErrNoSpace)
	}
	return nil, mem.Reserve(off, n)
}

// Discard frees the storage of n bytes at off in every replica of a region. This machine must be
// the region's primary, and all blocks there must be free: see region.AllocatorConfig. It does not
// wait for the replacement of a lost backup. A backup that refuses has not freed its storage.
func (m *Machine) Discard(ctx context.Context, id region.ID, off, n uint64) (in uint32, err error) {
	d := discard{region: id, off: off, bytes: n, in: m.config.Load(), primary: m.cfg.ID}
	rt := m.route(id)
	if rt == nil || !rt.PrimaryHere {
		return 0, m.noRegion(region.MakeAddr(id, uint32(off)))
	}
	for _, b := range rt.Backups {
		reply, err := m.anyWorker().call(ctx, b, message.Message{Kind: message.Request, B: uint16(handlerDiscard), Body: d.encode()}, nil)
		if err != nil {
			return d.in, fmt.Errorf("%w: discard at machine %d: %w", region.ErrDoubt, b, err)
		}
		if err := shippedError(replyCode(reply.A), reply.Body); err != nil {
			return d.in, fmt.Errorf("backup at machine %d: %w", b, err)
		}
	}
	return d.in, m.discard(d)
}

// A discard is a primary's request to a backup: free the storage of free blocks.
type discard struct {
	region     region.ID
	off, bytes uint64
	in         uint32 // the configuration in which the primary asks
	primary    rdma.MachineID
}

const discardBytes = 28

func (d discard) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(d.region))
	b = binary.LittleEndian.AppendUint64(b, d.off)
	b = binary.LittleEndian.AppendUint64(b, d.bytes)
	b = binary.LittleEndian.AppendUint32(b, d.in)
	return binary.LittleEndian.AppendUint32(b, uint32(d.primary))
}

func (m *Machine) handleDiscard(_ context.Context, arg []byte) ([]byte, error) {
	if len(arg) != discardBytes {
		return nil, fmt.Errorf("%w: discard of %d bytes", message.ErrBad, len(arg))
	}
	le := binary.LittleEndian
	return nil, m.discard(discard{
		region: region.ID(le.Uint32(arg)), off: le.Uint64(arg[4:]), bytes: le.Uint64(arg[12:]),
		in: le.Uint32(arg[20:]), primary: rdma.MachineID(le.Uint32(arg[24:])),
	})
}

// discard frees the storage here. The request may come when the primary has stopped waiting, or is
// not the primary any more. Another machine may by then be the primary and allocate from the
// blocks: it relies on their storage. So a request is valid only in the configuration in which it
// was made. Freeze ends that configuration, and waits until discard is done.
func (m *Machine) discard(d discard) error {
	m.reserving.RLock()
	defer m.reserving.RUnlock()
	rt := m.route(d.region)
	if rt == nil || rt.Local == nil || rt.Primary != d.primary || m.config.Load() != d.in {
		return fmt.Errorf("%w: discard in region %d, of another configuration", ErrNoRegion, d.region)
	}
	return rt.Local.Discard(d.off, d.bytes)
}
