package host

import (
	"slices"
	"strconv"
	"strings"
)

// A Mount is a file system, and where it is.
type Mount struct {
	Point   string
	Type    string   // as in mount -t
	Options []string // of the mount and of the file system
}

// Option returns the value of an option "name=value", and "" for an option without a value.
func (m Mount) Option(name string) (value string, isSet bool) {
	i := slices.IndexFunc(m.Options, func(o string) bool { return o == name || strings.HasPrefix(o, name+"=") })
	if i < 0 {
		return "", false
	}
	_, value, _ = strings.Cut(m.Options[i], "=")
	return value, true
}

// MountOf returns the mount that has path, which is absolute and has no symbolic links. It returns
// false if that is unknown.
func (r Root) MountOf(path string) (m Mount, isKnown bool) {
	text, _ := r.Text("/proc/self/mountinfo") // without it nothing is known
	for line := range strings.Lines(text) {
		next, ok := parseMount(line)
		// Of several mounts at one point, the last one is visible.
		if ok && isIn(path, next.Point) && len(next.Point) >= len(m.Point) {
			m, isKnown = next, true
		}
	}
	return m, isKnown
}

// parseMount parses a line of mountinfo (see proc_pid_mountinfo(5)):
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
func parseMount(line string) (Mount, bool) {
	mount, system, found := strings.Cut(line, " - ")
	fields, rest := strings.Fields(mount), strings.Fields(system)
	if !found || len(fields) < 6 || len(rest) < 2 {
		return Mount{}, false
	}
	options := fields[5]
	if len(rest) > 2 {
		options += "," + rest[2]
	}
	return Mount{Point: unescape(fields[4]), Type: rest[0], Options: strings.Split(options, ",")}, true
}

// unescape replaces the octal codes of blanks and backslashes, such as \040.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isIn(path, folder string) bool {
	return folder == "/" || path == folder || strings.HasPrefix(path, folder+"/")
}
