package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

const qemu = "qemu-system-x86_64"

// processor is the processor that QEMU emulates. Without "fast string operations" Linux copies
// words and not bytes; QEMU would execute each byte separately.
const processor = "max,-erms,-fsrm"

// commandLine has the parameters of the kernel. Nothing interrupts the kernel in the middle of a
// copy (preempt=none). It does not check whether its timer ticks in time, because the timer may be
// late on a busy computer (no_timer_check). It trusts the clock that QEMU provides, and stops at
// once when it fails.
const commandLine = "console=ttyS0 quiet loglevel=3 panic=-1 preempt=none no_timer_check mitigations=off nokaslr random.trust_cpu=on tsc=unstable"

// processors returns QEMU's argument for a number of processors.
//
// There is always room for a second one. Without it QEMU translates locked instructions and fences to plain ones, as if nothing ran beside
// the one processor. But the devices are emulated by another thread. Linux puts a fence between offering a buffer to a virtio device and
// asking whether the device has to be told. Without that fence the device is sometimes not told, and an interface that waits
// for it to send something sends nothing any more (the kernel's NETDEV WATCHDOG).
func processors(n int) string { return fmt.Sprintf("%d,maxcpus=%d", n, max(n, 2)) }

// computer returns QEMU's arguments for a virtual machine without a network. The console is file descriptor 3, what the tests
// print is stdout.
func computer(cpus int, memory string, k *kernel, initrd string) []string {
	return []string{
		"-M", "q35", "-accel", "tcg", "-cpu", processor, "-smp", processors(cpus), "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-chardev", "file,id=console,path=/dev/fd/3", "-serial", "chardev:console", "-serial", "stdio",
		"-kernel", k.image, "-initrd", initrd, "-append", commandLine,
	}
}

// boot runs the virtual machine, copies what the tests print to out, and returns their status.
func boot(o *options, k *kernel, initrd string, out io.Writer) (status int, err error) {
	at, err := exec.LookPath(qemu)
	if err != nil {
		return notRun, fmt.Errorf("%w: install qemu-system-x86", err)
	}
	// The tests have somewhat less time than this, so that the timeouts of go test and of init report first.
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout+bootMax)
	defer cancel()
	vm := exec.CommandContext(ctx, at, append(computer(o.cpus, o.memory, k, initrd), "-nic", "none")...)
	r, w, err := os.Pipe()
	if err != nil {
		return notRun, err
	}
	defer r.Close()
	vm.ExtraFiles = []*os.File{w}
	vm.Stdout, vm.Stderr = out, os.Stderr
	if err := vm.Start(); err != nil {
		return notRun, errors.Join(err, w.Close())
	}
	_ = w.Close() // QEMU has a descriptor of its own
	console := listen(r, o.verbose)
	err = vm.Wait()
	said := <-console
	if ctx.Err() != nil {
		err = fmt.Errorf("not at its end after %v", o.timeout+bootMax)
	}
	return verdict(said, err)
}

// listen collects the output of the kernel and of init, until both have ended.
func listen(r io.Reader, verbose bool) <-chan []byte {
	console := make(chan []byte, 1)
	go func() {
		var said bytes.Buffer
		to := io.Writer(&said)
		if verbose {
			to = io.MultiWriter(&said, os.Stderr)
		}
		_, _ = io.Copy(to, r) // ends with the virtual machine
		console <- said.Bytes()
	}()
	return console
}

var (
	statusLine = regexp.MustCompile(`(?m)^@@ status (\d+)`)
	reasonLine = regexp.MustCompile(`(?m)^@@ reason ([^\r\n]*)`)
)

// notPrepared is the status with which init ends if it cannot start the tests.
const notPrepared = 125

// verdict finds the tests' status in the output of init. err is the error with which QEMU ended.
func verdict(said []byte, err error) (int, error) {
	found := statusLine.FindSubmatch(said)
	if found == nil {
		return notRun, fmt.Errorf("the virtual machine has ended without a status (%v); it said:\n%s", err, said)
	}
	status, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return notRun, err
	}
	if status == notPrepared {
		reason := ""
		if r := reasonLine.FindSubmatch(said); r != nil {
			reason = string(r[1])
		}
		return notRun, fmt.Errorf("the virtual machine could not be prepared: %s; it said:\n%s", reason, said)
	}
	return status, nil
}
