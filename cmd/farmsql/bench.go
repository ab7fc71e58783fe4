package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/farmsql/farmsql/internal/cli"
)

// benchProgram is the program that runs the benchmarks. It is separate from farmsql because
// the libraries that draw plots and read profiles are as large as the database.
const benchProgram = "farmsql-bench"

type benchCommand struct {
	Args []string `arg:"" optional:"" help:"What farmsql-bench is given."`
}

// Run replaces this process by the benchmark program, which has to be in farmsql's folder.
func (c *benchCommand) Run(cli.Streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder := filepath.Dir(self)
	program := filepath.Join(folder, benchProgram)
	err = syscall.Exec(program, append([]string{program}, c.Args...), os.Environ())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the benchmarks are a program of their own, %s, which is not in %s, where farmsql is; in a checkout of farmsql, build it: "+
			"go build -tags gms_pure_go -o %s ./cmd/%s", benchProgram, folder, folder, benchProgram)
	}
	return fmt.Errorf("%s: %w", program, err)
}
