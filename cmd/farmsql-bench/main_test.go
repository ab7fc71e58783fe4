package main

import (
	"testing"

	"github.com/farmsql/farmsql/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, run) }

// execute runs the command line in this process.
func execute(_ *testing.T, in string, args ...string) (status int, stdout, stderr string) {
	return clitest.Program(run).Execute(in, args...)
}
