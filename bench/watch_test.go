package bench

import (
	"os/exec"
	"testing"
	"time"
)

// The processor time of child processes does not count as that of others.
func TestWatchCountsOwnProcesses(t *testing.T) {
	w := StartWatch()
	if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	alone := takeSample() // before, so that it cannot have more by itself
	if family := familySample(); family.own <= alone.own {
		t.Errorf("%v with the process, %v without", family.own, alone.own)
	}
	c := w.Conditions()
	if c.Others < 0 || c.Began != w.begin.at || c.CPU != Computer().CPU || c.Commit != Commit() {
		t.Errorf("%+v", c)
	}
	w.begin.own -= time.Hour // this program's, so others were idle
	if c := w.Conditions(); c.Others != 0 {
		t.Errorf("others kept %v processors busy", c.Others)
	}
}
