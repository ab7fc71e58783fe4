package farmsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/region"
)

// An Absence says that regions are unavailable until one of the machines is back with its memory: see
// RegionStatus.Away.
type Absence struct {
	Machines, Regions []int // ascending
}

// Absences returns the absences that the instance waits for, in the order of their lowest regions.
func (s Status) Absences() (list []Absence) {
	for _, r := range s.Regions {
		if len(r.Away) == 0 {
			continue
		}
		i := slices.IndexFunc(list, func(a Absence) bool { return slices.Equal(a.Machines, r.Away) })
		if i < 0 {
			list = append(list, Absence{Machines: r.Away})
			i = len(list) - 1
		}
		list[i].Regions = append(list[i].Regions, r.Region)
	}
	return list
}

// String says which machines have to come back, and which regions wait for them.
func (a Absence) String() string {
	return fmt.Sprintf("until %s is back with its memory: %s", alternatives(a.Machines), regionNames(a.Regions))
}

// absences returns the absences that the given regions of c wait for.
func absences(c *cluster.Configuration, regions []region.ID) []Absence {
	var s Status
	for _, id := range regions {
		if p, ok := c.Placement(id); ok {
			s.Regions = append(s.Regions, regionStatus(p))
		}
	}
	return s.Absences()
}

// alternatives names machines in words, for a text in which any of them is enough.
func alternatives(machines []int) string {
	return "machine " + strings.Join(words(machines), " or ")
}

// regionNames names regions.
func regionNames(regions []int) string {
	if len(regions) == 1 {
		return "region " + words(regions)[0]
	}
	return "regions " + strings.Join(words(regions), " ")
}

func words(ns []int) (list []string) {
	for _, n := range ns {
		list = append(list, fmt.Sprint(n))
	}
	return list
}
