package raftstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/farmsql/farmsql/nvram"
)

const (
	logMagic  = "farmraft"
	logFormat = 1
	// frameAlign is the size of the header of the file and of a frame, and frames are padded to it. So
	// a header lies in one sector of the disk, and a power cut leaves all of it or none.
	frameAlign = 16
	// compactBytes is how long the log is at least before it is compacted.
	compactBytes = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// A logFile keeps on disk what a machine must not forget: snapshot, term, vote and entries. All
// of it is in memory too, where the library reads it.
//
//	file:   | magic 8 | format 4 | zeros 4 | frame | frame | ...
//	frame:  | payload's bytes 4 | payload's CRC 4 | zeros 4 | CRC of these 12 bytes 4 | payload | zeros to a multiple of 16 |
//
// The payload is a raftpb.Message with the fields that the library gives to its
// MsgStorageAppend: term, vote and commit, snapshot, entries. Each frame is written and synced
// at once; nothing of a frame is told to anybody before. So only the last frame can be torn,
// and a torn frame is dropped. A frame counts as torn if it is shorter than its header says,
// its payload has another CRC, or its header is zeros, and no other header lies behind its
// beginning. Anything else that is not as it was written is damage, which Open refuses: what
// follows has been promised to others.
//
// Entries replace those of the same index and above.
type logFile struct {
	path   string
	file   *os.File
	bytes  int64
	memory *raft.MemoryStorage
}

// record returns the payload of a frame. hard and snapshot may be nil.
func record(hard *raftpb.HardState, snapshot *raftpb.Snapshot, entries []*raftpb.Entry) *raftpb.Message {
	m := &raftpb.Message{Type: raftpb.MsgStorageAppend.Enum(), Entries: entries}
	if !raft.IsEmptyHardState(hard) {
		m.Term, m.Vote, m.Commit = new(hard.GetTerm()), new(hard.GetVote()), new(hard.GetCommit())
	}
	if !raft.IsEmptySnap(snapshot) {
		m.Snapshot = snapshot
	}
	return m
}

// encodeLog returns a file with one frame.
func encodeLog(m *raftpb.Message) ([]byte, error) {
	head := make([]byte, frameAlign)
	copy(head, logMagic)
	binary.LittleEndian.PutUint32(head[8:], logFormat)
	frame, err := encodeFrame(m)
	return append(head, frame...), err
}

func encodeFrame(m *raftpb.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, frameAlign), m)
	if err != nil {
		return nil, err
	}
	le, payload := binary.LittleEndian, b[frameAlign:]
	le.PutUint32(b, uint32(len(payload)))
	le.PutUint32(b[4:], checksum(payload))
	le.PutUint32(b[12:], checksum(b[:12]))
	return append(b, make([]byte, padding(len(payload)))...), nil
}

func padding(n int) int { return -n & (frameAlign - 1) }

// openLog reads a log, and drops a frame at its end that a crash has torn.
func openLog(path string) (*logFile, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: read the log of the configuration store: %w", err)
	}
	l := &logFile{path: path, memory: raft.NewMemoryStorage()}
	end, err := l.replay(b)
	if errors.Is(err, ErrDamaged) {
		return nil, fmt.Errorf("%w of %s; the other machines go on without this one. Check its disk and put the file back as it was, but never create this part of the store again: without its log the machine breaks promises that it has made", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	l.file, err = os.OpenFile(path, os.O_RDWR, 0)
	if err == nil && end < len(b) {
		// Truncate before anything is appended: otherwise the rest of the torn frame could be
		// taken for a frame that follows.
		err = l.file.Truncate(int64(end))
	}
	if err == nil {
		// The previous process may have been killed between a write and its sync: what has been
		// read is told to others, as if it were durable.
		err = errors.Join(l.file.Sync(), syncFolder(filepath.Dir(path)))
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: open the log of the configuration store: %w", err)
	}
	l.bytes = int64(end)
	return l, nil
}

// replay reads all frames of a file into memory, and returns where the last whole one ends.
func (l *logFile) replay(b []byte) (end int, err error) {
	if len(b) < frameAlign || string(b[:8]) != logMagic {
		return 0, fmt.Errorf("%w: no header at byte 0", ErrDamaged)
	}
	if format := binary.LittleEndian.Uint32(b[8:]); format != logFormat {
		return 0, fmt.Errorf("%w: the log has format %d, this program knows format %d: use a newer farmsql", ErrNewer, format, logFormat)
	}
	end = frameAlign
	for end < len(b) {
		payload, n, err := readFrame(b[end:])
		if err != nil {
			return 0, fmt.Errorf("%w at byte %d", err, end)
		}
		if n == 0 {
			if next := nextHeader(b[end:]); next > 0 {
				return 0, fmt.Errorf("%w: a frame is lost at byte %d, before the one at byte %d", ErrDamaged, end, end+next)
			}
			break
		}
		if err := l.load(payload); err != nil {
			return 0, fmt.Errorf("%w at byte %d", err, end)
		}
		end += n
	}
	if hard, _, _ := l.memory.InitialState(); raft.IsEmptyHardState(hard) {
		return 0, fmt.Errorf("%w: no frame, up to byte %d", ErrDamaged, end)
	} else if err := l.setHardState(hard); err != nil { // checks the last commit index: a snapshot comes with one, too
		return 0, fmt.Errorf("%w, up to byte %d", err, end)
	}
	return end, nil
}

// nextHeader returns where the next header after the beginning of b is, or 0 if there is none.
// The rest of a payload is not taken for a header: it would need the CRC of one.
func nextHeader(b []byte) int {
	for at := frameAlign; at+frameAlign <= len(b); at += frameAlign {
		if isHeader(b[at:]) {
			return at
		}
	}
	return 0
}

// isHeader reports whether b begins with the header of a frame: the payload's length and CRC, 4 bytes of zero, and the CRC
// of these.
func isHeader(b []byte) bool {
	le := binary.LittleEndian
	return le.Uint32(b[8:]) == 0 && le.Uint32(b[12:]) == checksum(b[:12])
}

// readFrame returns the payload of the frame at the beginning of b, and the frame's size. The size is
// 0 if the frame is torn, should it be the last one.
func readFrame(b []byte) (payload []byte, n int, err error) {
	if len(b) < frameAlign || allZero(b[:frameAlign]) {
		return nil, 0, nil
	}
	if !isHeader(b) {
		return nil, 0, fmt.Errorf("%w: the header of a frame", ErrDamaged)
	}
	le := binary.LittleEndian
	payloadBytes := int(le.Uint32(b))
	n = frameAlign + payloadBytes + padding(payloadBytes)
	isLast := n >= len(b)
	if n > len(b) {
		return nil, 0, nil
	}
	payload = b[frameAlign : frameAlign+payloadBytes]
	if le.Uint32(b[4:]) == checksum(payload) {
		return payload, n, nil
	}
	if isLast {
		return nil, 0, nil
	}
	return nil, 0, fmt.Errorf("%w: a frame of %d bytes", ErrDamaged, n)
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// load takes a frame's content into memory.
func (l *logFile) load(payload []byte) error {
	var m raftpb.Message
	if err := proto.Unmarshal(payload, &m); err != nil {
		return fmt.Errorf("%w: the content of a frame: %w", ErrDamaged, err)
	}
	if !raft.IsEmptySnap(m.GetSnapshot()) {
		if err := l.memory.ApplySnapshot(m.GetSnapshot()); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	last, _ := l.memory.LastIndex()
	for i, e := range m.GetEntries() { // they follow each other, and leave no gap behind the last one in memory
		if e.GetIndex() != m.GetEntries()[0].GetIndex()+uint64(i) || e.GetIndex() > last+1+uint64(i) {
			return fmt.Errorf("%w: entry %d after entry %d", ErrDamaged, e.GetIndex(), last)
		}
	}
	if err := l.memory.Append(m.GetEntries()); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if m.Term != nil {
		return l.setHardState(&raftpb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit})
	}
	return nil
}

func (l *logFile) setHardState(hard *raftpb.HardState) error {
	first, _ := l.memory.FirstIndex()
	last, _ := l.memory.LastIndex()
	if c := hard.GetCommit(); c < first-1 || c > last {
		return fmt.Errorf("%w: entry %d is committed, the log has %d to %d", ErrDamaged, c, first, last)
	}
	return l.memory.SetHardState(hard)
}

// append keeps what the library gives it. When it returns nil, that is on disk. If only the
// commit index has grown, append keeps that in memory alone, because a leader tells it again.
// But it is on disk before later entries are. A change of the votes ends with an entry: a
// machine that has that entry must know after a restart that the change was committed, or it
// would count the former votes.
func (l *logFile) append(hard *raftpb.HardState, snapshot *raftpb.Snapshot, entries []*raftpb.Entry, mustSync bool) error {
	if mustSync || !raft.IsEmptySnap(snapshot) {
		known := hard
		if raft.IsEmptyHardState(hard) && raft.IsEmptySnap(snapshot) { // a snapshot comes with its commit index
			known, _, _ = l.memory.InitialState() // never fails
		}
		if err := l.write(record(known, snapshot, entries)); err != nil {
			return fmt.Errorf("cluster: write the log of the configuration store: %w", err)
		}
	}
	if !raft.IsEmptySnap(snapshot) {
		if err := l.memory.ApplySnapshot(snapshot); err != nil {
			return fmt.Errorf("cluster: the configuration store has got a snapshot: %w", err)
		}
	}
	if err := l.memory.Append(entries); err != nil {
		return err
	}
	if !raft.IsEmptyHardState(hard) {
		return l.memory.SetHardState(hard)
	}
	return nil
}

func (l *logFile) write(m *raftpb.Message) error {
	frame, err := encodeFrame(m)
	if err != nil {
		return err
	}
	if _, err := l.file.WriteAt(frame, l.bytes); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.bytes += int64(len(frame))
	return nil
}

// compact replaces the log by a snapshot of s, as it is after the entry applied, with the votes as they
// are then, and the entries after that.
func (l *logFile) compact(applied uint64, votes *raftpb.ConfState, s *state) error {
	if first, _ := l.memory.FirstIndex(); applied < first {
		return nil // the log has nothing before the snapshot
	}
	snapshot, err := l.memory.CreateSnapshot(applied, votes, s.encode())
	if err == nil {
		err = l.memory.Compact(applied)
	}
	if err == nil {
		err = l.rewrite(snapshot)
	}
	if err != nil {
		return fmt.Errorf("cluster: compact the log of the configuration store: %w", err)
	}
	return nil
}

// isLong reports whether the log is to be compacted for its length.
func (l *logFile) isLong(s *state) bool { return l.bytes >= compactBytes+4*int64(len(s.configuration)) }

// rewrite writes a new file with everything that is in memory.
func (l *logFile) rewrite(snapshot *raftpb.Snapshot) error {
	hard, _, _ := l.memory.InitialState() // never fails
	var entries []*raftpb.Entry
	first, _ := l.memory.FirstIndex()
	if last, _ := l.memory.LastIndex(); first <= last {
		var err error
		if entries, err = l.memory.Entries(first, last+1, ^uint64(0)); err != nil {
			return err
		}
	}
	b, err := encodeLog(record(hard, snapshot, entries))
	if err != nil {
		return err
	}
	if err := nvram.ReplaceFile(l.path, ".new", b); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_ = l.file.Close() // the former log: nothing of it is needed
	l.file, l.bytes = file, int64(len(b))
	return nil
}

func (l *logFile) close() error { return l.file.Close() }

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
