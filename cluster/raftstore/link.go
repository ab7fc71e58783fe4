package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// framesMax is how many frames wait for a connection. The library sends again what is dropped, so
// a few are enough.
const framesMax = 64

// A link sends messages to one other machine, over a connection that it keeps open.
type link struct {
	cfg      *Config
	greeting greeting
	address  string
	frames   chan []byte
	start    func()             // begins run
	stop     context.CancelFunc // ends run
	removed  func()             // called when the machine says that this one has been replaced
	broken   func()             // called when the connection has ended, or none could be made

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		isAsking bool      // an ask has no answer yet
		answered time.Time // when the last answer came
		reason   error     // why there is no connection; nil if there is one
		knows    byte      // what the machine knows, of knowsFormat; of the last connection
	}
}

var (
	errNeverConnected = errors.New("has not been reached yet")
	errSilent         = errors.New("does not answer")
)

func newLink(cfg *Config, f *Founding, to rdma.MachineID, address string) *link {
	l := &link{cfg: cfg, greeting: f.greeting(to), address: address, frames: make(chan []byte, framesMax), removed: func() {}, broken: func() {}}
	l.mu.reason = errNeverConnected
	return l
}

// send queues a frame, or returns false if too many wait already. A nil frame stands for an ask alone.
func (l *link) send(frame []byte) bool {
	select {
	case l.frames <- frame:
		return true
	default:
		return false
	}
}

// answeredSince reports whether the machine has answered after begin, and if it has not, why.
func (l *link) answeredSince(begin time.Time) (ok bool, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.answered.After(begin) {
		return true, nil
	}
	if l.mu.reason != nil {
		return false, l.mu.reason
	}
	return false, errSilent
}

// run connects and sends until ctx is done.
func (l *link) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.connect(ctx)
		l.mu.Lock()
		l.mu.reason = err
		l.mu.Unlock()
		l.broken()
		if errors.Is(err, ErrRemoved) {
			l.removed()
		}
		pause(ctx, l.cfg.after(redialTicks))
	}
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect opens a connection and sends over it until it breaks. It returns why there is none, or none any more.
func (l *link) connect(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, l.cfg.after(silenceTicks))
	defer cancel()
	socket, err := l.cfg.Dial(opening, l.address)
	if err != nil {
		return err
	}
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	stream, knows, err := l.open(opening, socket)
	if err != nil {
		return err
	}
	l.dropFrames() // frames of the former connection: a swap that was proposed long ago must not be carried out now
	l.send(nil)    // in place of the asks among them: somebody waits for an answer
	l.mu.Lock()
	l.mu.isAsking, l.mu.reason, l.mu.knows = false, nil, knows
	l.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- l.listen(stream) }()
	err = l.serve(ctx, stream, ended)
	socket.Close() // ends listen
	if listened := <-ended; err == nil {
		err = listened
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent
	}
	return err
}

// dropFrames drops the frames that wait. The library sends again what matters, but nobody repeats an ask.
func (l *link) dropFrames() {
	for {
		select {
		case <-l.frames:
		default:
			return
		}
	}
}

// isEarlier reports whether the machine is connected and has a program that knows less than wanted: see
// knowsFormat.
func (l *link) isEarlier(wanted byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.reason == nil && l.mu.knows < wanted
}

// isRefoundable reports whether the machine has shown that its program knows what a Refounding leaves behind.
func (l *link) isRefoundable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.knows >= knowsRefounded
}

// knowsCalm reports whether the machine is connected and has a program that knows of calm.
// Frames that still wait when the connection ends are dropped before another program can get
// them.
func (l *link) knowsCalm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.reason == nil && l.mu.knows >= knowsCalm
}

// open makes the handshakes of a new connection.
func (l *link) open(ctx context.Context, socket net.Conn) (stream net.Conn, knows byte, err error) {
	deadline, _ := ctx.Deadline()
	if err := socket.SetDeadline(deadline); err != nil {
		return nil, 0, err
	}
	if stream, err = dialTLS(ctx, l.cfg.TLS, socket, l.address); err != nil {
		return nil, 0, err
	}
	if _, err := stream.Write(l.greeting.encode()); err != nil {
		return nil, 0, err
	}
	if knows, err = readReply(stream); err != nil {
		return nil, 0, err
	}
	return stream, knows, socket.SetDeadline(time.Time{})
}

// serve sends what is queued until the connection breaks. It returns nil if listen has ended, whose
// error then says why.
func (l *link) serve(ctx context.Context, stream net.Conn, ended chan error) error {
	for {
		select {
		case frame := <-l.frames:
			if err := l.write(stream, frame); err != nil {
				return err
			}
		case err := <-ended:
			ended <- err
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// write sends a frame, and an ask behind it unless one is not answered yet: an answer then shows
// that the frame has arrived. It sends an ask alone for an empty frame.
func (l *link) write(stream net.Conn, frame []byte) error {
	if err := stream.SetWriteDeadline(time.Now().Add(l.cfg.after(silenceTicks))); err != nil {
		return err
	}
	if len(frame) > 0 {
		if _, err := stream.Write(frame); err != nil {
			return err
		}
	}
	if isFirst, err := l.ask(stream); err != nil || !isFirst {
		return err
	}
	_, err := stream.Write(askFrame)
	return err
}

// ask starts the time in which an answer must come, unless it runs already.
func (l *link) ask(stream net.Conn) (isFirst bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.isAsking {
		return false, nil
	}
	l.mu.isAsking = true
	return true, stream.SetReadDeadline(time.Now().Add(l.cfg.after(silenceTicks)))
}

// listen takes answers until the connection breaks.
func (l *link) listen(stream net.Conn) error {
	var b [1]byte
	for {
		if _, err := io.ReadFull(stream, b[:]); err != nil {
			return fmt.Errorf("has closed the connection: %w", err)
		}
		if err := l.answer(stream); err != nil {
			return err
		}
	}
}

// answer notes an answer, and ends the time in which it had to come.
func (l *link) answer(stream net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.isAsking, l.mu.answered = false, time.Now()
	return stream.SetReadDeadline(time.Time{})
}
