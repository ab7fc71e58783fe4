package farmsql

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/region"
)

// TestPaper5_2_LostAndShortRegionsAreLogged: the CM signals an error if regions have lost all
// replicas, or there is no space to replicate them again. Here a region is not lost until an
// operator says so; until then it is unavailable. Each is logged once, by the machine that stores
// the configuration.
func TestPaper5_2_LostAndShortRegionsAreLogged(t *testing.T) {
	away := cluster.Placement{Region: 3, Primary: 2, Away: []cluster.Memory{{Machine: 2, Token: 7}, {Machine: 1, Token: 8}}}
	unavailable := `level=ERROR msg="regions are unavailable: start one of the machines that have them, with its data folder; ` +
		`only if the memory of each is gone for ever, give the regions up with farmsql forget" machine=4 regions=[3] start="[1 2]"`
	for want, report := range map[string]cluster.Remapped{
		unavailable: {Unavailable: []region.ID{3}},
		`level=INFO msg="regions are back, with all that was in them" machine=4 regions=[3]`:                                                                   {Returned: []region.ID{3}},
		`level=ERROR msg="regions are lost: nobody waits any more for the machines that had them" machine=4 regions=[3]`:                                       {Lost: []region.ID{3}},
		`level=WARN msg="regions have fewer replicas than they should: no machine of another failure domain is there that has room" machine=4 regions="[5 6]"`: {Short: []region.ID{5, 6}},
		"": {Promoted: []region.ID{5}, Refilled: []region.ID{6}},
	} {
		var log bytes.Buffer
		drop := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		cfg := Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: drop})), MachineID: 4}
		// Regions that were lost or away before are not logged again.
		cfg.events(cfg.MachineID).Stored(&cluster.Configuration{ID: 9, Lost: []region.ID{1}, Regions: []cluster.Placement{away}}, report)
		_, rest, _ := strings.Cut(log.String(), "\n") // after "configuration stored"
		if strings.TrimSuffix(rest, "\n") != want {
			t.Errorf("logged %s want %s", log.String(), want)
		}
	}
}
