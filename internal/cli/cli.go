// Package cli holds the common parts of the module's programs: they parse flags, print an
// error as one line on stderr, and exit with 0 for success, 1 for a failure and 2 for wrong
// flags.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Streams are a process's standard streams, replaced in tests.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit statuses of a program that fails.
const (
	ExitFailure = 1
	ExitUsage   = 2
)

// ErrReported marks a failure whose error the user has already seen.
var ErrReported = errors.New("reported")

// A Program parses and runs command lines.
type Program struct {
	Name, Description string
	// Commands points to a struct whose fields are the commands, in kong's form. Each has a
	// method Run(Streams) error, or Run(Streams, []string) error, which also gets the arguments of
	// the program.
	Commands any
	// Vars are the values of ${...} in help texts and defaults.
	Vars map[string]string
}

// Run runs a command line and returns the exit status. Without arguments it prints the help.
func (p Program) Run(args []string, std Streams) int {
	parser := kong.Must(p.Commands,
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Writers(std.Out, std.Err),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.Vars(p.Vars),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parse(parser, args)
	if err != nil {
		fmt.Fprintf(std.Err, "%s: %s (see %s %s--help)\n", p.Name, OneLine(err), p.Name, command(parser, args))
		return ExitUsage
	}
	if err := run(ctx, std); err != nil {
		if !errors.Is(err, ErrReported) {
			fmt.Fprintf(std.Err, "%s: %s\n", p.Name, OneLine(err))
		}
		if errors.Is(err, errUsage) {
			return ExitUsage
		}
		return ExitFailure
	}
	return 0
}

// parse sets the fields of the commands from args. It takes the steps of kong's Parse, except that
// it calls no hooks: kong looks hooks up by name. If the linker has to expect any name, it keeps
// all exported methods of all types, which are a quarter of a program (farmsql's TestSize).
func parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	ctx, err := kong.Trace(parser, args)
	switch {
	case err != nil:
		return nil, err
	case ctx.Error != nil:
		return nil, ctx.Error
	case asksForHelp(ctx):
		return ctx, nil
	}
	if err := ctx.Reset(); err != nil {
		return nil, err
	}
	if err := ctx.Resolve(); err != nil {
		return nil, err
	}
	if _, err := ctx.Apply(); err != nil {
		return nil, err
	}
	return ctx, ctx.Validate()
}

// asksForHelp reports whether the arguments contain the help flag.
func asksForHelp(ctx *kong.Context) bool {
	return slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag == ctx.Model.HelpFlag })
}

// run runs the command of ctx, or prints its help.
func run(ctx *kong.Context, std Streams) error {
	if asksForHelp(ctx) {
		return ctx.PrintUsage(false)
	}
	switch c := ctx.Selected().Target.Addr().Interface().(type) {
	case interface{ Run(Streams) error }:
		return c.Run(std)
	case interface{ Run(Streams, []string) error }:
		return c.Run(std, ctx.Args)
	default:
		return fmt.Errorf("%T does not run", c)
	}
}

// OneLine returns an error's text on one line, without the module's name in front.
func OneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "farmsql: ")), " ")
}

// command returns the first command among args with a space after it, or an empty text.
func command(parser *kong.Kong, args []string) string {
	for _, a := range args {
		for _, child := range parser.Model.Children {
			if a == child.Name {
				return a + " "
			}
		}
	}
	return ""
}

// errUsage marks a combination of flags that cannot work.
var errUsage = errors.New("wrong flags")

// UsageError returns an error that ends the process with ExitUsage.
func UsageError(text string) error {
	return wrongFlags(strings.TrimPrefix(text, "farmsql: "))
}

type wrongFlags string

func (w wrongFlags) Error() string      { return string(w) }
func (wrongFlags) Is(target error) bool { return target == errUsage }
