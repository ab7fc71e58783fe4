package raftstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/farmsql/farmsql/rdma"
)

// entry returns one whose swap writes data.
func entry(index, term uint64, data string) *raftpb.Entry {
	c := swap{index, index + 1, requestID{byte(index)}, []byte(data)}
	return &raftpb.Entry{Index: new(index), Term: new(term), Data: c.encode()}
}

func hard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: new(term), Vote: new(vote), Commit: new(commit)}
}

// newLogFile returns the log of a new store of three machines.
func newLogFile(t testing.TB) *logFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), logName)
	if err := createLog(path, []uint64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.close() })
	return l
}

func mustAppend(t testing.TB, l *logFile, h *raftpb.HardState, entries ...*raftpb.Entry) {
	t.Helper()
	if err := l.append(h, nil, entries, true); err != nil {
		t.Fatal(err)
	}
}

// content returns what a log holds: term, vote, the snapshot's index, and the terms of the entries
// after it.
func content(t testing.TB, l *logFile) (all []uint64) {
	t.Helper()
	h, _, _ := l.memory.InitialState()
	snapshot, _ := l.memory.Snapshot()
	all = []uint64{h.GetTerm(), h.GetVote(), snapshot.GetMetadata().GetIndex()}
	first, _ := l.memory.FirstIndex()
	last, _ := l.memory.LastIndex()
	for i := first; i <= last; i++ {
		term, err := l.memory.Term(i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, term)
	}
	return all
}

func reopened(t testing.TB, l *logFile) *logFile {
	t.Helper()
	again, err := openLog(l.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.close() })
	return again
}

// Everything that was appended is there again, and later entries have replaced those of their indexes.
func TestLog(t *testing.T) {
	l := newLogFile(t)
	if got := content(t, l); !reflect.DeepEqual(got, []uint64{1, 0, 1}) {
		t.Fatalf("a new log: %v", got)
	}
	mustAppend(t, l, hard(2, 3, 1))
	mustAppend(t, l, nil, entry(2, 2, "a"), entry(3, 2, "b"), entry(4, 2, "c"))
	mustAppend(t, l, hard(3, 0, 2), entry(3, 3, "d"))
	want := []uint64{3, 0, 1, 2, 3}
	for range 2 {
		if got := content(t, l); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		l = reopened(t, l)
	}
	mustAppend(t, l, nil, entry(4, 3, "e"))
	if err := l.append(nil, &raftpb.Snapshot{Data: (&state{}).encode(), Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(9)), Term: new(uint64(4)), ConfState: &raftpb.ConfState{Voters: []uint64{1}}}}, nil, false); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, hard(4, 1, 9), entry(10, 4, "f"))
	if got, want := content(t, reopened(t, l)), []uint64{4, 1, 9, 4}; !reflect.DeepEqual(got, want) {
		t.Errorf("after a snapshot: %v, want %v", got, want)
	}
}

// A commit index alone is not worth a sync, but is on disk with the next entries: see logFile.append.
func TestCommitIndexIsNotWritten(t *testing.T) {
	l := newLogFile(t)
	mustAppend(t, l, nil, entry(2, 1, "a"))
	before := l.bytes
	if err := l.append(hard(1, 0, 2), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if l.bytes != before {
		t.Errorf("%d bytes, then %d", before, l.bytes)
	}
	mustAppend(t, l, nil, entry(3, 1, "b"))
	if h, _, _ := reopened(t, l).memory.InitialState(); h.GetCommit() != 2 {
		t.Errorf("entry %d is committed, want 2", h.GetCommit())
	}
}

// A compacted log holds the state, and the entries that are not applied.
func TestCompact(t *testing.T) {
	l := newLogFile(t)
	large := strings.Repeat("x", compactBytes/2)
	mustAppend(t, l, hard(2, 1, 1), entry(2, 2, large), entry(3, 2, large), entry(4, 2, "last"))
	s := &state{revision: 4, configuration: []byte("three")}
	if err := l.compact(1, nil, s); err != nil || l.bytes < compactBytes {
		t.Fatalf("nothing is applied: %d bytes, %v", l.bytes, err)
	}
	if err := l.append(hard(2, 1, 3), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if err := l.compact(3, nil, s); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(l.path); err != nil || info.Size() != l.bytes || l.bytes > 1000 {
		t.Errorf("%v, %v, want %d bytes", info, err, l.bytes)
	}
	mustAppend(t, l, nil, entry(5, 2, "more"))
	again := reopened(t, l)
	if got, want := content(t, again), []uint64{2, 1, 3, 2, 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	snapshot, _ := again.memory.Snapshot()
	if got, err := decodeState(snapshot.GetData()); err != nil || !reflect.DeepEqual(&got, s) {
		t.Errorf("%+v, %v", got, err)
	}
	if again.isLong(s) {
		t.Errorf("a log of %d bytes is long", again.bytes)
	}
}

func TestCompactFails(t *testing.T) {
	l := newLogFile(t)
	mustAppend(t, l, hard(2, 1, 2), entry(2, 2, strings.Repeat("x", compactBytes)))
	l.path = filepath.Join(l.path, "no folder")
	if err := l.compact(2, nil, &state{}); err == nil || !strings.Contains(err.Error(), "compact") {
		t.Error(err)
	}
}

// A last frame that is torn, wherever that is, is dropped, and the log goes on before it.
func TestTornFrame(t *testing.T) {
	l := newLogFile(t)
	mustAppend(t, l, nil, entry(2, 1, "a"))
	whole := l.bytes
	mustAppend(t, l, nil, entry(3, 1, "bbbbbbbbbbbbbbbb"))
	b, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	torn := map[string][]byte{"zeros": append(bytes.Clone(b[:whole]), make([]byte, 100)...)}
	for n := whole + 1; n < int64(len(b)); n++ {
		torn[fmt.Sprint(n, " bytes")] = b[:n]
	}
	lost := bytes.Clone(b)
	clear(lost[whole+frameAlign : whole+2*frameAlign]) // a sector that was not written
	torn["a sector"] = lost
	lost = bytes.Clone(b)
	clear(lost[whole : whole+frameAlign])
	torn["the header's sector"] = lost
	for name, b := range torn {
		if err := os.WriteFile(l.path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		again := reopened(t, l)
		if got, want := content(t, again), []uint64{1, 0, 1, 1}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		mustAppend(t, again, nil, entry(3, 1, "c"))
		if got, want := content(t, reopened(t, l)), []uint64{1, 0, 1, 1, 1}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s, then one more: %v, want %v", name, got, want)
		}
	}
}

// Damage before the last frame, and strange files, are refused.
func TestDamagedLog(t *testing.T) {
	l := newLogFile(t)
	first := l.bytes
	mustAppend(t, l, nil, entry(2, 1, "a"))
	second := l.bytes
	mustAppend(t, l, nil, entry(3, 1, "b"))
	good, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int64) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	zeroed := func(from, to, end int64) []byte {
		b := bytes.Clone(good[:end])
		clear(b[from:to])
		return b
	}
	whole := int64(len(good))
	newer := bytes.Clone(good)
	binary.LittleEndian.PutUint32(newer[8:], logFormat+1)
	with := func(m *raftpb.Message) []byte {
		frame, err := encodeFrame(m)
		if err != nil {
			t.Fatal(err)
		}
		return append(bytes.Clone(good), frame...)
	}
	noMessage := func() []byte {
		b := with(&raftpb.Message{Context: []byte("x")})
		frame := b[len(good):]
		frame[frameAlign] = 0xff // not a field
		le := binary.LittleEndian
		le.PutUint32(frame[4:], checksum(frame[frameAlign:frameAlign+int(le.Uint32(frame))]))
		le.PutUint32(frame[12:], checksum(frame[:12]))
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"empty":                {nil, ErrDamaged},
		"something else":       {[]byte("{\"Program\": \"farmsql\"}"), ErrDamaged},
		"newer":                {newer, ErrNewer},
		"no frame":             {good[:frameAlign], ErrDamaged},
		"header of a frame":    {flipped(frameAlign), ErrDamaged},
		"a frame":              {flipped(2*frameAlign + 1), ErrDamaged},
		"the frame before":     {flipped(second - frameAlign - 1), ErrDamaged},
		"no header":            {zeroed(first, first+frameAlign, whole), ErrDamaged},
		"no first header":      {zeroed(frameAlign, 2*frameAlign, whole), ErrDamaged},
		"no frame between":     {zeroed(first, second, whole), ErrDamaged},
		"none before a torn":   {zeroed(first, second, second+frameAlign), ErrDamaged},
		"no content":           {noMessage(), ErrDamaged},
		"a gap":                {with(record(nil, nil, []*raftpb.Entry{entry(7, 1, "x")})), ErrDamaged},
		"entries out of order": {with(record(nil, nil, []*raftpb.Entry{entry(4, 1, "x"), entry(6, 1, "y")})), ErrDamaged},
		"commit of nothing":    {with(record(hard(2, 0, 9), nil, nil)), ErrDamaged},
		"an old snapshot":      {with(record(nil, &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(1))}}, nil)), ErrDamaged},
		"a snapshot alone":     {with(record(nil, &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(8))}}, nil)), ErrDamaged},
	} {
		if err := os.WriteFile(l.path, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openLog(l.path); !errors.Is(err, c.want) || !strings.Contains(err.Error(), l.path) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if b, err := os.ReadFile(l.path); err != nil || !bytes.Equal(b, c.b) {
			t.Errorf("%s: the file has changed, %v", name, err)
		}
	}
	if err := os.WriteFile(l.path, zeroed(first, first+frameAlign, whole), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := fmt.Sprintf("a frame is lost at byte %d, before the one at byte %d of %s", first, second, l.path)
	if _, err := openLog(l.path); err == nil || !strings.Contains(err.Error(), lost) || !strings.Contains(err.Error(), "never create") {
		t.Errorf("%v, want %s", err, lost)
	}
	if _, err := openLog(l.path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Create refuses what cannot work; what it has made can be opened, and nothing else.
func TestCreate(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	for name, c := range map[string]struct {
		f    Founding
		want string
	}{
		"no cluster":       {Founding{Machines: founding(1, 0).Machines}, "identity"},
		"two machines":     {founding(2, 0), "2 machines"},
		"no machines":      {Founding{Cluster: 1}, "0 machines"},
		"another machine":  {founding(3, 3), "machine 3 is not one"},
		"no address":       {Founding{Cluster: 1, Machines: addresses("")}, "machine 0 of the configuration store has no address"},
		"no other address": {Founding{Cluster: 1, Machines: addresses("h:1", "", "h:2")}, "machine 1"},
		"one address":      {Founding{Cluster: 1, Machines: addresses("h:1", "h:2", "h:1")}, "machine 2"},
	} {
		if err := Create(folder, c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused store has left %v", err)
	}
	want := founding(3, 1)
	if err := Create(folder, want); err != nil {
		t.Fatal(err)
	}
	if err := Create(folder, want); !errors.Is(err, ErrCreated) || !strings.Contains(err.Error(), folder) {
		t.Errorf("created twice: %v", err)
	}
	got, log, err := openFolder(folder)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	log.close()
	file := filepath.Join(folder, foundingFile)
	for text, want := range map[string]error{
		"x":                                 ErrDamaged,
		`{"Program": "other", "Format": 1}`: ErrDamaged,
		`{"Program": "farmsql", "Format": 1, "Cluster": 1, "Machines": {}}`: ErrDamaged,
		`{"Program": "farmsql", "Format": 4}`:                               ErrNewer,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openFolder(folder); !errors.Is(err, want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openFolder(folder); !errors.Is(err, ErrNotCreated) || !strings.Contains(err.Error(), folder) {
		t.Errorf("no %s: %v", foundingFile, err)
	}
}

// Create and Open name the folder or file that they cannot use.
func TestFolderFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(filepath.Join(file, "x"), founding(1, 0)); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	for _, inTheWay := range []string{logName + ".new", foundingFile + ".new"} {
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, inTheWay), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Create(folder, founding(1, 0)); err == nil || !strings.Contains(err.Error(), inTheWay) {
			t.Errorf("%s in the way: %v", inTheWay, err)
		}
	}
}

func addresses(all ...string) map[rdma.MachineID]string {
	m := make(map[rdma.MachineID]string)
	for i, a := range all {
		m[rdma.MachineID(i)] = a
	}
	return m
}

func FuzzLog(f *testing.F) {
	l := newLogFile(f)
	mustAppend(f, l, hard(2, 1, 1), entry(2, 2, "a"), entry(3, 2, "b"))
	b, err := os.ReadFile(l.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[frameAlign+frameAlign:])
	for _, m := range []*raftpb.Message{
		record(hard(2, 1, 2), nil, []*raftpb.Entry{entry(2, 2, "a"), entry(3, 2, "b")}),
		record(nil, &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(8))}}, nil),
	} {
		payload, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	inMemory := func() *logFile { return &logFile{memory: raft.NewMemoryStorage()} }
	f.Fuzz(func(t *testing.T, damaged []byte) {
		_, _ = inMemory().replay(damaged)
		_, _ = inMemory().replay(append(b[:frameAlign:frameAlign], damaged...))
		l := inMemory()
		if _, err := l.replay(b); err != nil {
			t.Fatal(err)
		}
		if l.load(damaged) == nil {
			content(t, l) // has no gap
		}
	})
}

func FuzzEntry(f *testing.F) {
	f.Add((&swap{1, 2, requestID{3}, []byte("x")}).encode())
	f.Add((&state{revision: 1, writer: requestID{3}, configuration: []byte("x")}).encode())
	f.Add((&state{configuration: []byte("x"), founders: &Founders{Machines: map[rdma.MachineID]string{1: "x:1"}}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := decodeSwap(b); err == nil {
			if again, err := decodeSwap(c.encode()); err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("%+v, then %+v, %v", c, again, err)
			}
		}
		if s, err := decodeState(b); err == nil {
			if again, err := decodeState(s.encode()); err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%+v, then %+v, %v", s, again, err)
			}
		}
	})
}
