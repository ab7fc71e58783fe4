package farmsql

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/region"
)

// TestPaper5_2_LostAndShortRegionsAreLogged: the CM signals an error if regions have
// lost all replicas, or there is no space to replicate them again.
func TestPaper5_2_LostAndShortRegionsAreLogged(t *testing.T) {
	for want, c := range map[string]struct {
		lost   []region.ID
		report cluster.Remapped
	}{
		`level=ERROR msg="regions have lost all their replicas" machine=4 regions=[3]`: {[]region.ID{3}, cluster.Remapped{Lost: []region.ID{3}}},
		`level=WARN msg="regions have fewer replicas than they should: no machine of another failure domain has room" machine=4 regions="[5 6]"`: {
			nil, cluster.Remapped{Short: []region.ID{5, 6}}},
		"": {nil, cluster.Remapped{Promoted: []region.ID{5}, Refilled: []region.ID{6}}},
	} {
		var log bytes.Buffer
		drop := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		cfg := Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: drop})), MachineID: 4}
		cfg.events().Stored(&cluster.Configuration{ID: 9, Lost: c.lost}, c.report)
		_, rest, _ := strings.Cut(log.String(), "\n") // after "configuration stored"
		if strings.TrimSuffix(rest, "\n") != want {
			t.Errorf("logged %s want %s", log.String(), want)
		}
	}
}
