package nvram

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A Fullness says how full the file system of a folder is.
type Fullness struct {
	Percent int   // how much is used of the space that is not reserved for root
	Free    int64 // bytes
	Size    int64 // bytes, without those reserved for root
}

// FullnessOf returns the fullness of the file system at path.
func FullnessOf(path string) (Fullness, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Fullness{}, fmt.Errorf("nvram: statfs %s: %w", path, err)
	}
	return fullness(s.Blocks-s.Bfree, s.Bavail, s.Bsize), nil
}

func fullness(used, free uint64, blockBytes int64) Fullness {
	return Fullness{Percent: int(used * 100 / max(used+free, 1)), Free: int64(free) * blockBytes, Size: int64(used+free) * blockBytes}
}

// fullnessSteps are the percentages at which a watch reports: in time to act, and at the last
// moment. A step is reported again once the fullness has fallen below it by more than fullnessBack.
var fullnessSteps = [...]int{80, 95}

const fullnessBack = 5

// A watch reports that a folder's file system has passed a step.
type watch struct {
	path string
	tell func(Fullness)
	told atomic.Int32 // the last step that was reported and is still exceeded
}

// look reports the fullness of the file system if a step has been passed. It runs after storage has
// been taken, which costs far more than the system call of look.
func (w *watch) look() {
	if w == nil || w.tell == nil {
		return
	}
	if f, err := FullnessOf(w.path); err == nil { // callers that need storage get their own error
		w.see(f)
	}
}

// see reports f if it exceeds a higher step than the last report. If fullness has fallen far enough
// below that step, see allows a new report of it.
func (w *watch) see(f Fullness) {
	step := int32(0)
	for _, s := range fullnessSteps {
		if f.Percent >= s {
			step = int32(s)
		}
	}
	switch told := w.told.Load(); {
	case step > told:
		if w.told.CompareAndSwap(told, step) {
			w.tell(f)
		}
	case f.Percent < int(told)-fullnessBack:
		w.told.CompareAndSwap(told, step)
	}
}
