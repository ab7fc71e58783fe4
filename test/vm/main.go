// Command vm runs the tests of a package in a virtual machine whose kernel has soft-RoCE
// (rdma_rxe), so that package rdma/verbs can be tested on computers without a card:
//
//	go run ./test/vm ./rdma/verbs -test.v -test.run Conformance
//
// Arguments after the package go to the test binary. The command prints the tests' output and ends
// with their status. Status 2 means that the virtual machine did not start, or did not complete the
// tests.
//
// QEMU emulates the processor, so neither KVM nor root is needed. The kernel is Debian's,
// downloaded once with apt-get into the user's cache. Everything else is built for each run from
// the programs and libraries of this computer, in less than a second.
//
// The virtual machine has one processor. The kernel carries out a READ or WRITE of soft-RoCE with
// memcpy. If another processor looked at the memory meanwhile, this copy would be atomic neither
// for a line nor for a word, though package rdma promises that of a card. With a single processor,
// no code runs during the copy.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// bootMax is how long the virtual machine may take in addition to the tests.
const bootMax = 60 * time.Second

// notRun is the exit status if the tests did not run to completion.
const notRun = 2

// options are the command's flags and arguments.
type options struct {
	kernel  string // a folder with boot/vmlinuz-* and lib/modules; "" for Debian's
	cpus    int
	memory  string
	hosts   int
	timeout time.Duration
	verbose bool
	env     string
	tags    string
	pkg     string
	args    []string // of the test binary
}

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
	}
	os.Exit(status)
}

// parse reads the command line.
func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("vm", flag.ContinueOnError)
	f.StringVar(&o.kernel, "kernel", "", "a `folder` into which a Debian kernel package was unpacked, instead of the one that is downloaded")
	f.IntVar(&o.cpus, "cpus", 1, "processors; with several, tests of atomic lines fail, because soft-RoCE has none")
	f.StringVar(&o.memory, "memory", "2G", "memory of the virtual machine")
	f.IntVar(&o.hosts, "hosts", 1, "RDMA devices, 1 to 9: rxe1 on an interface of its own, or one for each host, joined by a bridge")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long the virtual machine may run")
	f.BoolVar(&o.verbose, "v", false, "print the kernel's messages as well, and how long each step takes")
	f.StringVar(&o.env, "env", "", "further `NAME=VALUE` of the environment, separated by spaces")
	f.StringVar(&o.tags, "tags", "gms_pure_go,verbs", "build tags")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.pkg = f.Arg(0); o.pkg == "" {
		return o, errors.New("which package? vm [flags] PACKAGE [flags of the test binary]")
	}
	if o.hosts < 1 || o.hosts > 9 {
		return o, fmt.Errorf("-hosts is from 1 to 9, not %d", o.hosts)
	}
	o.args = f.Args()[1:]
	return o, nil
}

// run runs the tests and returns their status.
func run(args []string) (status int, err error) {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	}
	if err != nil {
		return notRun, err
	}
	begin := time.Now()
	step := func(what string) {
		if o.verbose {
			fmt.Fprintf(os.Stderr, "vm: %.1f s: %s\n", time.Since(begin).Seconds(), what)
		}
	}
	scratch, err := os.MkdirTemp("", "farmsql-vm-")
	if err != nil {
		return notRun, err
	}
	defer os.RemoveAll(scratch)
	payload, err := buildTests(&o, scratch)
	if err != nil {
		return notRun, err
	}
	step("the tests are built")
	k, err := findKernel(o.kernel)
	if err != nil {
		return notRun, err
	}
	initrd, err := buildImage(scratch, k, payload.addTo)
	if err != nil {
		return notRun, err
	}
	step("the image is made")
	defer step("the end")
	return boot(&o, k, initrd, os.Stdout)
}

// buildTests compiles a package's tests.
func buildTests(o *options, scratch string) (payload, error) {
	p := payload{binary: scratch + "/tests", hosts: o.hosts, env: o.env, args: o.args, timeout: o.timeout}
	build := exec.Command("go", "test", "-c", "-vet=off", "-tags", o.tags, "-o", p.binary, o.pkg)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return p, fmt.Errorf("building the tests of %s: %w", o.pkg, err)
	}
	if _, err := os.Stat(p.binary); err != nil {
		return p, fmt.Errorf("%s has no tests with the tags %s", o.pkg, o.tags)
	}
	dir, err := exec.Command("go", "list", "-tags", o.tags, "-f", "{{.Dir}}", o.pkg).Output()
	if err != nil {
		return p, fmt.Errorf("finding %s: %w", o.pkg, err)
	}
	p.dir = string(dir[:len(dir)-1]) // without the newline
	return p, nil
}
