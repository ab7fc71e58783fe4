package farmsql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// certificateNotices are the times before the end of a machine's certificate at which the machine logs
// that it ends; after the end it does so every certificateReminder.
var certificateNotices = []time.Duration{30 * 24 * time.Hour, 7 * 24 * time.Hour, 24 * time.Hour, 0}

const certificateReminder = 24 * time.Hour

// watchCertificate logs, until stop is called, that the certificate which the machine shows the others
// ends soon, or has ended. Connections stay when it does, so that nothing else might show it before the
// next failure. c may be nil.
func watchCertificate(c *tls.Config, k clock.Clock, log *slog.Logger) (stop func()) {
	leaf := leafOf(c)
	if leaf == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			now := k.Now()
			noteCertificate(leaf, now, log)
			if !pause(ctx, k, nextNotice(leaf.NotAfter, now).Sub(now)) {
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// leafOf returns this machine's certificate; nil without TLS.
func leafOf(c *tls.Config) *x509.Certificate {
	if c == nil || len(c.Certificates) == 0 || len(c.Certificates[0].Certificate) == 0 {
		return nil
	}
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		return nil // the others refuse it, and say so
	}
	return leaf
}

// noteCertificate logs that a certificate ends soon, or has ended.
func noteCertificate(leaf *x509.Certificate, now time.Time, log *slog.Logger) {
	const mend = "give this machine another certificate (--peer-cert, where that was given), and restart it"
	left := leaf.NotAfter.Sub(now)
	switch {
	case left <= 0:
		log.Error("the certificate of this machine has expired: the others refuse new connections", "until", leaf.NotAfter, "mend", mend)
	case left <= certificateNotices[0]:
		log.Warn("the certificate of this machine expires soon", "until", leaf.NotAfter, "mend", mend)
	}
}

// nextNotice returns when the next line about a certificate is due.
func nextNotice(end, now time.Time) time.Time {
	for _, before := range certificateNotices {
		if at := end.Add(-before); at.After(now) {
			return at
		}
	}
	return now.Add(certificateReminder)
}

// pause waits for a time. It returns false if ctx has ended before.
func pause(ctx context.Context, k clock.Clock, d time.Duration) bool {
	rung := make(chan struct{})
	timer := k.AfterFunc(d, func() { close(rung) })
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-rung:
		return true
	}
}
