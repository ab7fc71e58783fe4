package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// ReserveBackups reserves storage for n bytes at off in every backup of a region, because a NIC's
// WRITE cannot report that a file system is full. It fails with region.ErrDeparted if the tenure is
// over, and with nvram.ErrNoSpace if one backup has no space. If a backup is lost, it asks the backups
// of the next configuration; reserving twice does no harm. It returns the configuration in which
// the backups that it asked became the region's replicas.
func (m *Machine) ReserveBackups(t *region.Tenure, off, n uint64) (in uint32, err error) {
	behind := wait.Need{Lease: &m.Lease, Ctx: context.Background(), What: "all backups of region", Region: t.ID()}
	for {
		in, err := m.reserveBackups(t, off, n)
		switch {
		case errors.Is(err, errBehind):
			if err := behind.Pause(); err != nil {
				return 0, err
			}
		case !errors.Is(err, outcome.ErrInDoubt):
			return in, err
		}
	}
}

// errBehind: a backup has not yet applied the configuration that makes it a backup.
var errBehind = fmt.Errorf("%w: a new backup knows nothing of the region", outcome.ErrLost)

// reserveBackups makes one attempt at ReserveBackups. It returns errBehind if a backup does not know
// the region yet.
func (m *Machine) reserveBackups(t *region.Tenure, off, n uint64) (in uint32, err error) {
	before := m.Routes.Load()
	rt, err := m.ownRoute(before, t)
	if err != nil {
		return 0, err
	}
	arg := message.Reservation{Region: t.ID(), Off: off, Bytes: n}.Encode()
	for _, b := range rt.Backups {
		_, err := m.shipTo(context.Background(), before, b, handlerReserve, arg)
		if errors.Is(err, outcome.ErrNoRegion) {
			err = cmp.Or(m.Gone(), errBehind)
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
	a, err := message.DecodeReservation(arg)
	if err != nil {
		return nil, err
	}
	m.reserving.RLock()
	defer m.reserving.RUnlock()
	rt := m.Route(a.Region)
	if rt == nil || rt.Local == nil || !rt.Has(m.cfg.ID) {
		return nil, fmt.Errorf("%w: reservation in region %d", outcome.ErrNoRegion, a.Region)
	}
	mem := rt.Local.Memory()
	if a.Off > mem.Size() || a.Bytes > mem.Size()-a.Off {
		return nil, fmt.Errorf("%w: reservation of %d bytes at %#x of region %d", message.ErrBad, a.Bytes, a.Off, a.Region)
	}
	if m.Meets(clock.NoStorage) {
		return nil, fmt.Errorf("txn: region %d: %w", a.Region, nvram.ErrNoSpace)
	}
	return nil, mem.Reserve(a.Off, a.Bytes)
}

// Discard frees the storage of n bytes at off in every replica of a region. It fails with
// region.ErrDeparted if the tenure is over. All blocks there must be free: see
// region.AllocatorConfig. It does not wait for the replacement of a lost backup, but fails with
// region.ErrDoubt. A backup that refuses has not freed its storage. Discard returns the configuration in
// which it has asked, or 0 if the tenure is over.
func (m *Machine) Discard(ctx context.Context, t *region.Tenure, off, n uint64) (in uint32, err error) {
	d := message.Discard{Region: t.ID(), Off: off, Bytes: n, In: m.config.Load(), Primary: m.cfg.ID}
	rt, err := m.ownRoute(m.Routes.Load(), t)
	if err != nil {
		return 0, err
	}
	for _, b := range rt.Backups {
		reply, err := m.anyWorker().Call(ctx, b, message.Message{Kind: message.Request, B: uint16(handlerDiscard), Body: d.Encode()}, nil)
		if err != nil {
			return d.In, fmt.Errorf("%w: discard at machine %d: %w", region.ErrDoubt, b, err)
		}
		if err := outcome.Shipped(outcome.Code(reply.A), reply.Body); err != nil {
			return d.In, fmt.Errorf("backup at machine %d: %w", b, err)
		}
	}
	return d.In, m.discard(d)
}

func (m *Machine) handleDiscard(_ context.Context, arg []byte) ([]byte, error) {
	d, err := message.DecodeDiscard(arg)
	if err != nil {
		return nil, err
	}
	return nil, m.discard(d)
}

// discard frees the storage here. A request is valid only in the configuration in which it was made:
// it may come late, when another machine is the primary, allocates from the blocks and relies on their
// storage. Freeze, which ends the configuration, waits until discard is done.
func (m *Machine) discard(d message.Discard) error {
	m.reserving.RLock()
	defer m.reserving.RUnlock()
	rt := m.Route(d.Region)
	if rt == nil || rt.Local == nil || rt.Primary != d.Primary || m.config.Load() != d.In {
		return fmt.Errorf("%w: discard in region %d, of another configuration", outcome.ErrNoRegion, d.Region)
	}
	return rt.Local.Discard(d.Off, d.Bytes)
}
