package wire

import (
	"net"
	"sync"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/myerr"
)

// TurnAway handles clients that connect to l before it is served: it lets each wait for at
// most patience, and then sends error 1047 with text in place of the greeting. Clients that
// still wait when stop is called are served later. stop returns once no client is being
// answered, so that l can be served. TurnAway does not close l.
func TurnAway(l *net.TCPListener, patience time.Duration, text string) (stop func()) {
	over := make(chan struct{})
	wait := func(d time.Duration) (isOver bool) {
		select {
		case <-over:
			return true
		case <-time.After(d):
			return false
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		for isOver := wait(patience); !isOver; {
			c, err := l.Accept()
			if err != nil { // stop has ended it, or there is no descriptor left
				isOver = wait(acceptRetry)
				continue
			}
			_ = c.SetWriteDeadline(clock.System{}.Now().Add(time.Second))
			_, _ = c.Write(errorPacket(0, uint16(myerr.Unavailable.Number), "", text))
			_ = c.Close()
		}
	})
	return sync.OnceFunc(func() {
		close(over)
		_ = l.SetDeadline(time.Unix(1, 0)) // ends Accept; fails if the listener is closed, which has ended Accept
		all.Wait()
		_ = l.SetDeadline(time.Time{})
	})
}
