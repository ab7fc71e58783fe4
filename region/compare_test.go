package region

import (
	"strings"
	"testing"
)

func TestCompareFindsEveryDifference(t *testing.T) {
	for _, c := range []struct {
		want string
		harm func(backup *Region, p Ptr)
	}{
		{"", func(*Region, Ptr) {}},
		{"header", func(r *Region, p Ptr) { r.m.Store(uint64(p.Addr.Offset()), uint64(MakeHeader(7, true))) }},
		{"incarnation 3", func(r *Region, p Ptr) { r.m.Store(uint64(p.Addr.Offset())+incarnationOffset, 3) }},
		{"read as", func(r *Region, p Ptr) { r.setBlocks(int(p.Addr.Offset()>>r.shift), []uint64{0}) }},
		{"payload", func(r *Region, p Ptr) { r.m.Store(uint64(p.Addr.Offset())+HeaderBytes, 9) }},
	} {
		pair := newPair(t, 1, 1<<20)
		a := newAllocator(t, AllocatorConfig{Replicate: pair.replicate}, pair.primary)
		p, v := mustAlloc(t, a, 0, 300, 0)
		pair.commit(t, p, v, []byte("payload"))
		freed, v := mustAlloc(t, a, 0, 300, 0)
		pair.commit(t, freed, v, []byte("payload"))
		pair.free(t, a, freed)
		c.harm(pair.backup, p)
		fs := pair.primary.Compare(pair.backup)
		if c.want == "" {
			if len(fs) > 0 {
				t.Errorf("nothing differs: %v", fs)
			}
			continue
		}
		if len(fs) == 0 || fs[0].Kind != Damaged || fs[0].Ptr != p || !strings.Contains(fs[0].Text, differs+": "+c.want) {
			t.Errorf("want %q of %v, got %v", c.want, p, fs)
		}
	}
}
