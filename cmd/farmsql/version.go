package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/farmsql/farmsql/internal/cli"
)

type versionCommand struct{}

// Run prints the version, the commit it was built from if known, and Go's.
func (versionCommand) Run(std cli.Streams) error {
	fmt.Fprintf(std.Out, "farmsql %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
		if s.Key == "vcs.modified" && s.Value == "true" {
			v += " modified"
		}
	}
	return v
}
