package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// initScript is the first process of the virtual machine.
//
//go:embed init.sh
var initScript []byte

// busyboxNames are the commands of busybox that init.sh uses. ip is missing because busybox's own ip can do too little.
var busyboxNames = []string{"sh", "mount", "mkdir", "cat", "cut", "echo", "grep", "insmod", "poweroff", "sed", "setsid", "sleep", "stty", "sync", "timeout", "dmesg", "ls", "tail"}

// provider is the library by which libibverbs uses soft-RoCE.
const provider = "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so"

// A payload is the test that runs in the virtual machine, with its files.
type payload struct {
	binary  string // the test binary
	dir     string // the folder of its package, whose testdata it may read
	hosts   int
	env     string
	args    []string
	timeout time.Duration
}

// buildImage writes the file system that the kernel starts with: programs, libraries, modules, tests.
func buildImage(scratch string, k *kernel, addPayload func(*archive) error) (initrd string, err error) {
	var a archive
	for _, dir := range []string{"proc", "sys", "dev", "tmp", "run/netns", "root"} {
		a.add(dir, modeFolder, nil)
	}
	a.add("init", modeProgram, initScript)
	a.add("etc/passwd", modeProgram, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	a.add("etc/hosts", modeProgram, []byte("127.0.0.1 localhost\n"))
	a.add("etc/libibverbs.d/rxe.driver", modeProgram, []byte("driver rxe\n"))
	for _, part := range []func(*archive) error{addPrograms, k.addModules, addPayload} {
		if err := part(&a); err != nil {
			return "", err
		}
	}
	initrd = filepath.Join(scratch, "initrd")
	return initrd, os.WriteFile(initrd, a.bytes(), 0o600)
}

// addPrograms appends the programs that the scripts need.
func addPrograms(a *archive) error {
	for name, in := range map[string]string{"busybox": "busybox-static", "ip": "iproute2", "rdma": "iproute2"} {
		at, err := exec.LookPath(name)
		if err != nil {
			return fmt.Errorf("%w: install %s", err, in)
		}
		if err := a.addProgram("bin/"+name, at); err != nil {
			return err
		}
	}
	for _, name := range busyboxNames {
		a.add("bin/"+name, modeLink, []byte("busybox"))
	}
	if err := a.addProgram(provider, provider); err != nil {
		return fmt.Errorf("%w: install ibverbs-providers", err)
	}
	return nil
}

// addModules appends the modules, and a list of them in the order in which they are loaded.
func (k *kernel) addModules(a *archive) error {
	files, err := k.inOrder(wantedModules...)
	if err != nil {
		return err
	}
	var order strings.Builder
	for _, f := range files {
		name := filepath.Base(f)
		if err := a.addFile("modules/"+name, f); err != nil {
			return err
		}
		order.WriteString(name + "\n")
	}
	a.add("modules/order", modeProgram, []byte(order.String()))
	return nil
}

// addTo appends the tests, their files, and the script that runs them.
func (p payload) addTo(a *archive) error {
	if err := a.addProgram("payload/tests", p.binary); err != nil {
		return err
	}
	if data := p.dir + "/testdata"; exists(data) {
		if err := a.addFolder("payload/testdata", data); err != nil {
			return err
		}
	}
	script := "#!/bin/sh\ncd /payload\nexport FARMSQL_IN_VM=1 HOME=/root " + p.env + "\nexec timeout " + strconv.Itoa(int(p.timeout.Seconds())) + " ./tests"
	for _, arg := range p.args {
		script += " " + quote(arg)
	}
	a.add("payload/run", modeProgram, []byte(script+"\n"))
	a.add("payload/hosts", modeProgram, []byte(strconv.Itoa(p.hosts)+"\n"))
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// quote quotes a text as one word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
