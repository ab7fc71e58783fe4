package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// Config holds a server's settings. The zero value of a field means its
// default.
type Config struct {
	// ResultBufferBytes bounds the rows that one statement may return, because
	// all of them are held back until the statement's transaction has
	// committed or been validated. 64 MiB by default.
	ResultBufferBytes int64

	// MaxConnections is the greatest number of clients. A further one gets error 1040,
	// except that one more administrator may connect. In-process connections do not count.
	// 1000 by default. Clients that have not logged in are limited apart: see
	// UnauthenticatedMax.
	MaxConnections int

	// MaxPacketBytes bounds one request (max_allowed_packet). 64 MiB by
	// default, 1 GiB at most, as in MySQL.
	MaxPacketBytes int64

	// RetryMax is how often a statement outside of, or beside, an explicit transaction is
	// tried again after a conflict. 64 by default; negative means never.
	RetryMax int

	// ConnectTimeout bounds the handshake. 10 s by default.
	ConnectTimeout time.Duration

	// DrainTimeout is how long closing waits for running statements before it
	// cancels them. 5 s by default.
	DrainTimeout time.Duration
	// lastRequestTime is the constant of this name, except in tests.
	lastRequestTime time.Duration

	// TLS, if set, lets clients switch to TLS; with RequireTLS they must.
	TLS        *tls.Config
	RequireTLS bool

	// Shutdown, if not nil, starts an orderly end of the server's process, and does not wait
	// for it. Clients with the SHUTDOWN privilege may call it.
	Shutdown func()

	// Available, if not nil, returns an error while clients cannot be served. It may wait
	// for a moment, as statements do. While it returns an error, nobody can log in, and
	// COM_PING fails.
	Available func(context.Context) error

	Logger *slog.Logger
	Clock  clock.Clock
}

// Defaults and bounds of Config.
const (
	DefaultResultBufferBytes = 64 << 20
	DefaultMaxConnections    = 1000
	DefaultMaxPacketBytes    = 64 << 20
	DefaultRetryMax          = 64

	resultBufferBytesMin = 16 << 10
	maxPacketBytesMin    = 1 << 10
	maxPacketBytesMax    = 1 << 30
)

// UnauthenticatedMax returns how many clients that have not logged in may be connected: as many as
// clients that have logged in, so that all may connect at once. admission.go describes what happens
// beyond that.
func UnauthenticatedMax(connections int) int {
	const least = 16
	return max(connections, least)
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	setDefault(&c.ResultBufferBytes, DefaultResultBufferBytes)
	setDefault(&c.MaxConnections, DefaultMaxConnections)
	setDefault(&c.MaxPacketBytes, DefaultMaxPacketBytes)
	setDefault(&c.RetryMax, DefaultRetryMax)
	setDefault(&c.ConnectTimeout, 10*time.Second)
	setDefault(&c.DrainTimeout, 5*time.Second)
	setDefault(&c.lastRequestTime, lastRequestTime)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports the first setting that cannot work.
func (c Config) Validate() error {
	c = c.WithDefaults()
	switch {
	case c.ResultBufferBytes < resultBufferBytesMin:
		return fmt.Errorf("wire: result buffer of %d bytes: at least %d are needed", c.ResultBufferBytes, resultBufferBytesMin)
	case c.MaxConnections < 0:
		return fmt.Errorf("wire: %d connections: cannot be negative", c.MaxConnections)
	case c.MaxPacketBytes < maxPacketBytesMin || c.MaxPacketBytes > maxPacketBytesMax:
		return fmt.Errorf("wire: packets of %d bytes: must be %d to %d", c.MaxPacketBytes, maxPacketBytesMin, maxPacketBytesMax)
	case c.ConnectTimeout < 0 || c.DrainTimeout < 0:
		return errors.New("wire: a timeout is negative")
	case c.RequireTLS && c.TLS == nil:
		return errors.New("wire: TLS is required but not configured")
	}
	return nil
}
