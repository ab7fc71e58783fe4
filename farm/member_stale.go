package farm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/region"
)

// Beside a replica that is being filled there is a memory that lists its stale chunks: see
// region.Stale. This memory is made before the replica, and removed after the configuration says that
// the replica is complete. So a replica without such a memory has everything that was committed up
// to the last configuration that the machine has applied.

const stalePrefix = "stale-"

func staleName(id region.ID) string { return fmt.Sprintf("%s%d", stalePrefix, id) }

// asOf returns the last configuration that this machine's memory has applied, or 0.
func (m *Member) asOf() cluster.ID { return cluster.ID(m.identity.Load(identityApplied)) }

// openFilling opens a replica that has to be filled: the replica of an earlier life, if keepReplica
// finds one, and otherwise an empty one.
func (m *Member) openFilling(id region.ID) (*region.Region, error) {
	s, err := m.keepReplica(id, m.asOf())
	if err == nil && s == nil {
		s, err = m.emptyReplica(id)
	}
	if err != nil {
		return nil, err
	}
	s.Region().BeginFill() // before any transaction writes
	m.replicas.Lock()
	defer m.replicas.Unlock()
	m.stale[id] = s
	return s.Region(), nil
}

// keepReplica opens the replica of an earlier life, which was a member up to configuration asOf. It may
// have departed in that life, though not before the last configuration that was settled then: so it has
// missed nothing up to that one (see settling). keepReplica forgets the objects written by records in that life's logs, since those transactions may not have
// committed. It returns nil if there is no replica that can be kept.
func (m *Member) keepReplica(id region.ID, asOf cluster.ID) (*region.Stale, error) {
	names, err := m.memory.Names()
	if err != nil || asOf == 0 || !slices.Contains(names, regionName(id)) {
		return nil, err
	}
	r, err := m.mapRegion(id, m.cfg.Settings.RegionBytes)
	if errors.Is(err, region.ErrFormat) {
		m.log.Warn("a replica cannot be kept", "machine", m.id, "region", id, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	settled := cluster.ID(m.identity.Load(identitySettled))
	if sabotage.DepartedNames.Skipped() {
		settled = asOf
	}
	s, err := m.openStale(r, uint32(min(asOf, settled))+1)
	if errors.Is(err, region.ErrFormat) {
		m.log.Warn("a replica cannot be kept", "machine", m.id, "region", id, "error", err)
		return nil, nil
	}
	if err != nil {
		m.memories.leave(regionName(id), r.Memory())
		return nil, err
	}
	for p := range m.txn.Recovery().RecalledWrites {
		if p.Addr.Region() == id {
			s.Forget(p)
		}
	}
	m.log.Info("replica kept", "machine", m.id, "region", id, "before", s.Since())
	return s, nil
}

// openStale opens or creates the memory that lists the stale chunks of r, which has missed the
// configurations from since on.
func (m *Member) openStale(r *region.Region, since uint32) (*region.Stale, error) {
	mem, err := m.memory.Map(staleName(r.ID()), region.StaleBytes(int64(r.Size())))
	if err != nil {
		return nil, fmt.Errorf("farm: what is stale of region %d: %w", r.ID(), err)
	}
	if !region.Formatted(mem) {
		if err := r.FormatStale(since, mem); err != nil {
			m.memories.leave(staleName(r.ID()), mem)
			return nil, err
		}
		return r.OpenStale(mem)
	}
	s, err := r.OpenStale(mem)
	if err == nil {
		s.Rejoin(since)
	}
	return s, err
}

// emptyReplica makes an empty replica, all of which is stale. It makes the list of stale chunks
// first: a crash must never leave an empty replica that seems complete.
func (m *Member) emptyReplica(id region.ID) (*region.Stale, error) {
	size := m.cfg.Settings.RegionBytes
	if err := errors.Join(m.memory.Remove(regionName(id)), m.memory.Remove(staleName(id))); err != nil {
		return nil, fmt.Errorf("farm: region %d of machine %d: %w", id, m.id, err)
	}
	mem, err := m.memory.Map(staleName(id), region.StaleBytes(size))
	if err == nil {
		err = region.FormatStale(id, size, mem)
	}
	if err != nil {
		return nil, fmt.Errorf("farm: what is stale of region %d: %w", id, err)
	}
	r, err := m.makeRegion(id, size)
	if err != nil {
		return nil, err
	}
	return r.OpenStale(mem)
}

// staleOf returns the stale state of this machine's replica of a region, or nil if the replica has
// everything.
func (m *Member) staleOf(id region.ID) *region.Stale {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	return m.stale[id]
}

// compareBlocks is called when the primary has sent its block table for a replica being filled. It
// forgets the contents of blocks that belong to another slab now.
func (m *Member) compareBlocks(id region.ID) {
	if s := m.staleOf(id); s != nil {
		s.Compare()
	}
}

// endStale drops the stale state of the replicas for which isOver returns true: they are complete, or
// gone.
func (m *Member) endStale(isOver func(region.ID) bool) error {
	names, err := m.memory.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if id, ok := replicaOf(stalePrefix, name); ok && isOver(id) {
			if err := m.dropStale(id, m.staleOf(id)); err != nil {
				return fmt.Errorf("farm: remove %s of machine %d: %w", name, m.id, err)
			}
		}
	}
	return nil
}

// dropStale drops the stale state s of a region. The state's memory stays mapped while a goroutine
// still fills the replica.
func (m *Member) dropStale(id region.ID, s *region.Stale) error {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	if m.stale[id] != s {
		return nil // another replica has replaced this one, and has its own stale state
	}
	delete(m.stale, id)
	release, err := m.memory.Detach(staleName(id))
	var r *region.Region
	if s != nil {
		r = s.Region()
	}
	return errors.Join(err, m.releaseLocked(r, release))
}

// mark makes this machine's replicas mark the chunks that change, in each region that has too few
// complete replicas: a replica that is filled later asks for these marks. Marking begins between
// NEW-CONFIG and its acknowledgement, when no transaction is applied. So the marks cover everything
// that is missed by a machine that was a member up to the previous configuration.
func (m *Member) mark(c *cluster.Configuration) {
	for _, p := range c.Regions {
		r := m.replica(p.Region)
		switch {
		case r == nil:
		case len(p.Filling) == 0 && len(p.Backups) >= c.Least(&p)-1:
			r.Unmark()
		default:
			r.Mark(uint32(c.ID))
		}
	}
}

// MARKED and SUMS ask a region's primary about the region. Their argument is
//
//	| caller's configuration 32 | region 32 | a 32 | b 32 |
//
// In MARKED a is the configuration since which chunks have changed, and b zero; in SUMS a is the
// first chunk, and b the number of chunks.
const regionRequestBytes = 16

func regionRequest(config cluster.ID, id region.ID, a, b uint32) []byte {
	arg := binary.LittleEndian.AppendUint32(nil, uint32(config))
	arg = binary.LittleEndian.AppendUint32(arg, uint32(id))
	arg = binary.LittleEndian.AppendUint32(arg, a)
	return binary.LittleEndian.AppendUint32(arg, b)
}

var errBadRequest = errors.New("farm: a request about a region that makes no sense")

// decodeRequest decodes an argument made by regionRequest. It fails unless this machine is the region's
// primary and in the same configuration as the caller.
func (m *Member) decodeRequest(arg []byte) (r *region.Region, a, b uint32, err error) {
	if len(arg) != regionRequestBytes {
		return nil, 0, 0, fmt.Errorf("%w: %d bytes", errBadRequest, len(arg))
	}
	le := binary.LittleEndian
	config, id := cluster.ID(le.Uint32(arg)), region.ID(le.Uint32(arg[4:]))
	r = m.replica(id)
	if now := m.txn.Config(); config != now || r == nil || !m.txn.IsPrimary(region.MakeAddr(id, 0)) {
		return nil, 0, 0, fmt.Errorf("%w: machine %d is not the primary of region %d in configuration %d", errBadRequest, m.id, id, config)
	}
	return r, le.Uint32(arg[8:]), le.Uint32(arg[12:]), nil
}

// onMarked answers MARKED: with a byte 1 and the set of chunks that have changed, or with a byte 0 if
// the marks do not reach back far enough.
func (m *Member) onMarked(_ call.Peer, arg []byte) ([]byte, error) {
	defer m.txn.Start().End() // memory of a region that moves away stays mapped meanwhile
	r, since, _, err := m.decodeRequest(arg)
	if err != nil {
		return nil, err
	}
	set, ok := r.Marked(since)
	if !ok {
		return []byte{0}, nil
	}
	return append([]byte{1}, set...), nil
}

// sumsMax is the number of chunks whose checksums fit into a reply.
const sumsMax = call.BytesMax / 8

// onSums answers with the checksums of chunks of a region.
func (m *Member) onSums(_ call.Peer, arg []byte) ([]byte, error) {
	defer m.txn.Start().End()
	r, chunk, n, err := m.decodeRequest(arg)
	if err != nil {
		return nil, err
	}
	if n > sumsMax || int64(chunk)+int64(n) > int64(r.Chunks()) {
		return nil, fmt.Errorf("%w: %d checksums from chunk %d of %d on", errBadRequest, n, chunk, r.Chunks())
	}
	reply := make([]byte, 0, 8*n)
	for _, sum := range r.Sums(int(chunk), int(n)) {
		reply = binary.LittleEndian.AppendUint64(reply, sum)
	}
	return reply, nil
}

// askPrimary makes a MARKED or SUMS call to a region's primary, with the numbers a and b.
func (m *Member) askPrimary(ctx context.Context, c *cluster.Configuration, p cluster.Placement, kind uint8, a, b uint32) ([]byte, error) {
	primary, ok := c.Member(p.Primary)
	if !ok {
		return nil, fmt.Errorf("farm: region %d has no primary in configuration %d", p.Region, c.ID)
	}
	to := call.Peer{Machine: p.Primary, Incarnation: primary.Incarnation}
	return m.endpoint.Call(ctx, to, kind, regionRequest(c.ID, p.Region, a, b))
}

// askMarked asks which chunks have changed in configuration `since` or later. It returns false if
// the primary does not know.
func (m *Member) askMarked(ctx context.Context, c *cluster.Configuration, p cluster.Placement, since uint32) (region.ChunkSet, bool, error) {
	reply, err := m.askPrimary(ctx, c, p, kindMarked, since, 0)
	if err != nil {
		return nil, false, err
	}
	if len(reply) == 0 {
		return nil, false, fmt.Errorf("%w: empty answer", errBadRequest)
	}
	return reply[1:], reply[0] != 0, nil
}

// askSums asks for the checksums of n chunks from the given one on.
func (m *Member) askSums(ctx context.Context, c *cluster.Configuration, p cluster.Placement, chunk, n int) ([]uint64, error) {
	reply, err := m.askPrimary(ctx, c, p, kindSums, uint32(chunk), uint32(n))
	if err != nil {
		return nil, err
	}
	sums := make([]uint64, 0, len(reply)/8)
	for ; len(reply) >= 8; reply = reply[8:] {
		sums = append(sums, binary.LittleEndian.Uint64(reply))
	}
	return sums, nil
}
