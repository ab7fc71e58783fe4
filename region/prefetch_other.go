//go:build !amd64 && !arm64

package region

import (
	"sync/atomic"
	"unsafe"
)

func prefetch(p unsafe.Pointer) { atomic.LoadUint64((*uint64)(p)) }
