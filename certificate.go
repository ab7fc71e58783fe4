package farmsql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// certificateNotices are the times before the end of a machine's certificate at which the machine logs
// that it ends; after the end it does so every certificateReminder.
var certificateNotices = []time.Duration{30 * 24 * time.Hour, 7 * 24 * time.Hour, 24 * time.Hour, 0}

const certificateReminder = 24 * time.Hour

// watchCertificate logs, until stop is called, that the machine's certificate ends soon, or has
// ended, or that the certificate of an authority on which it depends does. Connections stay
// open when a certificate ends, so nothing else might show it before the next failure. c may be
// nil.
func watchCertificate(c *tls.Config, k clock.Clock, log *slog.Logger) (stop func()) {
	leaf := leafOf(c)
	if leaf == nil {
		return func() {}
	}
	first := firstToEnd(leaf, c, k.Now())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			now := k.Now()
			noteCertificate(first, first != leaf, now, log)
			if !pause(ctx, k, nextNotice(first.NotAfter, now).Sub(now)) {
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// firstToEnd returns the certificate at whose end the others refuse this machine. They need a
// chain from the machine's certificate to an authority that they know, and accept it until the
// first of its certificates ends. If there are several chains, the one that they accept longest
// counts. If no authorities are configured, or no chain leads to one, firstToEnd returns leaf.
func firstToEnd(leaf *x509.Certificate, c *tls.Config, now time.Time) *x509.Certificate {
	between := x509.NewCertPool()
	for _, der := range c.Certificates[0].Certificate[1:] {
		if authority, err := x509.ParseCertificate(der); err == nil { // the others do not use one that cannot be parsed, either
			between.AddCert(authority)
		}
	}
	if c.RootCAs == nil {
		return leaf
	}
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: c.RootCAs, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return leaf // the others refuse it, and say so
	}
	sooner := func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }
	var last *x509.Certificate
	for _, chain := range chains {
		if first := slices.MinFunc(chain, sooner); last == nil || sooner(first, last) > 0 {
			last = first
		}
	}
	return last
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
func noteCertificate(c *x509.Certificate, isAuthority bool, now time.Time, log *slog.Logger) {
	whose, mend := "this machine", "give this machine another certificate (--peer-cert, where that was given), and restart it"
	attributes := []any{"until", c.NotAfter}
	if isAuthority {
		whose, mend = "the authority of this machine", "make another authority, give all machines its certificate beside the former one (--peer-ca), then certificates by it (--peer-cert), and restart them each time, one after the other"
		attributes = append(attributes, "authority", c.Subject.String())
	}
	attributes = append(attributes, "mend", mend)
	left := c.NotAfter.Sub(now)
	switch {
	case left <= 0:
		log.Error("the certificate of "+whose+" has expired: the others refuse new connections", attributes...)
	case left <= certificateNotices[0]:
		log.Warn("the certificate of "+whose+" expires soon", attributes...)
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
