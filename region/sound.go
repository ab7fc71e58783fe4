package region

import "context"

// Sound checks the bytes of the region alone, for damage that no process leaves behind however
// it ends: invalid words of the block table, headers with bits that are never set, and objects
// that are not locked and whose lines have different versions. These are marks of memory that
// was copied while it was in use, or of which a power cut has lost pages. Locks are not
// damage: transactions cut short by a crash hold some, which recovery releases; nor is a run
// of blocks that was being taken. The report ends after 1000 faults, and when ctx does.
func (r *Region) Sound(ctx context.Context) ([]Fault, error) {
	var fs faults
	for i := range r.Blocks() {
		if b := r.block(i); !b.valid(i, r.Blocks()) {
			fs.add(Damaged, Ptr{}, "block %d: %v", i, b)
		}
	}
	for s := range r.slabs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range s.slots {
			if p, h := r.slot(s, i); !h.Locked() {
				r.checkSlot(&fs, p, h)
			}
		}
	}
	return fs, nil
}
