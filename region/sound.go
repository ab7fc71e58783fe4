package region

import "context"

// Sound searches the bytes of the region for damage that no process leaves behind, however it
// ends: invalid words of the block table, headers with bits that are never set, and unlocked
// objects whose lines have different versions. Memory has such damage if it was copied while in
// use, or if a power cut has lost pages of it. Locks are not damage: transactions cut short by a
// crash hold some, which recovery releases. Nor is an incomplete run of blocks, left by a crash
// while it was being written. The report ends after 1000 faults. If ctx is cancelled, Sound returns
// its error.
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
