//go:build !verbs || !linux || !cgo

package verbs

import (
	"strings"
	"testing"
)

// Without the tag, Join says what to build with.
func TestJoinWithoutTheTag(t *testing.T) {
	_, err := Join(Config{})
	for _, want := range []string{"-tags verbs", "libibverbs-dev", "pkg-config", "ibverbs-providers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
