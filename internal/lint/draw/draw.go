// Command draw prints functions and comments of the module, drawn by a seed, for a reader
// who has not seen them before to judge: which of them had to be read twice?
//
//	go run ./internal/lint/draw -seed 1
//	go run ./internal/lint/draw -seed 1 -n 10 txn recovery
//
// Arguments name folders; without any the whole module counts. Run it at the module's
// root. docs/testing.md says how the counts are used.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/farmsql/farmsql/internal/lint"
)

func main() {
	seed := flag.Uint64("seed", 1, "what is drawn")
	n := flag.Int("n", 30, "how many functions, and how many comments")
	flag.Parse()
	functions, comments, err := lint.Draw(os.DirFS("."), *seed, *n, flag.Args()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i, f := range functions {
		fmt.Printf("function %d of %d: %s\n", i+1, len(functions), f)
	}
	for i, c := range comments {
		fmt.Printf("comment %d of %d: %s\n", i+1, len(comments), c)
	}
}
