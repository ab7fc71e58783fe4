package nvram

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/lockrank"
)

const (
	lockName   = "LOCK"
	fileSuffix = ".mem"
)

// Options are options for opening a folder. The zero value is valid.
type Options struct {
	// Saves is the folder for saves, which outlive a power cut. With it, OpenFolder restores
	// the newest save when the folder itself is gone, as on a tmpfs.
	Saves string
	// Trust makes OpenFolder accept an existing folder that it would refuse with ErrCopy or
	// ErrLost. A person must vouch that the machine was shut down in order after the process died,
	// so that all of the folder reached the disk; or, for a copy, that no process had the folder
	// open when it was copied. The caller has to check the memory and then call Folder.MarkChecked.
	Trust bool
	// Remedy, if not empty, is the advice in an error about a lost folder, in place of restoring a
	// save.
	Remedy string
	// Pinnable refuses, with ErrMedium, a folder on a file system whose pages a NIC could not pin for
	// as long as they are registered. It is for networks whose cards read and write the memory
	// themselves; rdma/shm only maps it, and works on any file system.
	Pinnable bool
	// Filling, if not nil, is called when the file system has become 80 or 95 % full, by the
	// goroutine that has just taken storage. It must not wait.
	Filling func(Fullness)
	// BootID names the present boot; by default the kernel is asked.
	BootID string
}

// Folder is one machine's NVRAM folder: a directory with a file for each memory.
// Its methods are safe for concurrent use.
type Folder struct {
	path  string
	boot  string
	lock  *os.File
	place place
	held  bool // opened by HoldFolder
	watch *watch

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		mapped    map[string]*Memory // nil once closed
		unchecked error              // why the folder would be refused without Options.Trust
	}
}

// mapped is the file behind a memory.
type mapped struct {
	file     *os.File
	location Location
	watch    *watch // the watch of the memory's folder; nil without a folder
}

// OpenFolder opens the folder at path, or creates one. Its memory is in the state in which the last
// process closed the folder or was killed.
//
// Errors are ErrInUse, ErrUnwritable, ErrFormat, ErrCopy, ErrLost and ErrMedium. ErrLost means that the folder
// was not closed and the computer has been started again since, so that an unknown part of the
// latest stores is lost; or, with Options.Saves, that the folder is gone and was used after the
// newest save. After an error the folder is unchanged.
func OpenFolder(path string, o Options) (*Folder, error) {
	boot, err := o.boot()
	if err != nil {
		return nil, err
	}
	if o.Pinnable {
		if err := checkPinnable(path); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(path, PrivateFolder); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	f := &Folder{path: path, boot: boot, lock: lock, watch: &watch{path: path, tell: o.Filling}}
	f.mu.mapped = map[string]*Memory{}
	if f.place, err = placeOf(lock); err == nil {
		err = f.enter(o)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// HoldFolder locks the folder at path against other processes until Close, without changing it, for
// examining or saving its memory. No process may have mapped any of its memory. The errors are the
// errors of OpenFolder, and fs.ErrNotExist if there is no folder.
func HoldFolder(path string, o Options) (*Folder, error) {
	boot, err := o.boot()
	if err != nil {
		return nil, err
	}
	// Check first, because lockFolder would create a file even in a directory that is no folder.
	if _, ok, err := readManifest(path); err != nil || !ok {
		return nil, errors.Join(err, checkFolder(path, ok))
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	m, ok, err := readManifest(path)
	if err == nil {
		err = checkFolder(path, ok)
	}
	f := &Folder{path: path, boot: boot, lock: lock, held: true}
	if err == nil {
		f.place, err = placeOf(lock)
	}
	if err == nil {
		err = f.judge(m, o)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f.mu.mapped = map[string]*Memory{}
	return f, nil
}

// checkFolder returns fs.ErrNotExist for path, unless it has a manifest.
func checkFolder(path string, hasManifest bool) error {
	if hasManifest {
		return nil
	}
	return fmt.Errorf("nvram: %w", &fs.PathError{Op: "open folder", Path: path, Err: fs.ErrNotExist})
}

func (o Options) boot() (string, error) {
	if o.BootID != "" {
		return o.BootID, nil
	}
	return bootID()
}

// lockFolder locks the folder against other processes until the returned file is closed or this
// process ends.
func lockFolder(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, PrivateFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	_ = lock.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, path)
	}
	return nil, fmt.Errorf("%w: lock %s: %w", ErrUnwritable, path, err)
}

// enter determines whether the folder's memory is whole, and marks the folder as open.
func (f *Folder) enter(o Options) error {
	m, ok, err := readManifest(f.path)
	switch {
	case err != nil:
		return err
	case ok:
		err = f.judge(m, o)
	default:
		err = f.begin(o)
	}
	if err != nil {
		return err
	}
	if err := keepPrivate(f.path); err != nil {
		return err
	}
	// Remove the files that a killed restore has left.
	err = os.RemoveAll(filepath.Join(f.path, stagingName))
	if err == nil && f.mu.unchecked == nil { // an unchecked folder keeps its manifest until MarkChecked
		err = f.markOpen()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return o.markUsed()
}

func (f *Folder) markOpen() error {
	return writeManifest(f.path, manifest{stateOpen, f.boot, f.place})
}

// judge returns an error if the memory of an existing folder may not be whole. For a trusted folder
// it records that error instead, unless a restore of the folder was interrupted.
func (f *Folder) judge(m manifest, o Options) error {
	if m.state == stateRestoring {
		return fmt.Errorf("%w: restoring %s was interrupted; restore it again", ErrLost, f.path)
	}
	if m.state != stateOpen {
		return nil
	}
	var err error
	switch {
	case m.place.isAnother(f.place, m.boot == f.boot):
		err = fmt.Errorf("%w: %s was copied while a process used the original, or after that was killed; stop the original and copy it then, "+
			"or use farmsql save and farmsql restore; if no process ran when it was copied, the folder can be trusted (--trust), which checks it first",
			ErrCopy, f.path)
	case m.boot != f.boot:
		err = fmt.Errorf("%w: %s was not closed before the machine stopped, so that what had not reached the disk is gone; "+
			"if the machine was shut down in order, the folder can be trusted (--trust), which checks it first; otherwise: %s", ErrLost, f.path, o.remedy(f.path))
	}
	if o.Trust {
		f.mu.unchecked, err = err, nil
	}
	return err
}

// UncheckedError returns the error for which OpenFolder would have refused the folder without
// Options.Trust. It returns nil if there is none, and after MarkChecked.
func (f *Folder) UncheckedError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.unchecked
}

// MarkChecked records that the memory of a trusted folder has been checked and is sound. A
// folder that is closed before that is refused again the next time.
func (f *Folder) MarkChecked() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.unchecked == nil || f.held {
		return nil
	}
	if err := f.markOpen(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	f.mu.unchecked = nil
	return nil
}

// begin fills a directory that is not a folder yet, from the newest save if there is one. It fails
// with ErrLost if a folder was in use after that save, and with ErrFormat if the directory holds files
// of memories.
func (f *Folder) begin(o Options) error {
	names, err := f.Names()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: %s holds memory files but no %s", ErrFormat, f.path, manifestName)
	}
	if o.Saves == "" {
		return nil
	}
	save, used, err := o.newest()
	switch {
	case err != nil:
		return err
	case used:
		return fmt.Errorf("%w: %s is empty, but was in use after the newest save; %s", ErrLost, f.path, o.remedy(f.path))
	case save == "":
		return nil
	}
	s, err := OpenSave(save)
	if err != nil {
		return err
	}
	r := &Restoration{save: s, path: f.path, boot: f.boot}
	if err := r.Stage(nil); err != nil {
		return errors.Join(err, r.unstage())
	}
	return r.Replace()
}

// remedy returns advice on what to do about a lost folder.
func (o Options) remedy(path string) string {
	if o.Remedy != "" {
		return o.Remedy
	}
	if save, _, err := o.newest(); err == nil && save != "" {
		return fmt.Sprintf("to go back to the save %s, without what was committed after it, remove %s and %s; to begin anew, without any of it, remove %s and %s",
			save, path, filepath.Join(o.Saves, usedName), path, o.Saves)
	}
	if o.Saves != "" {
		return fmt.Sprintf("there is no save in %s; to begin anew, without any of it, remove %s and %s", o.Saves, path, o.Saves)
	}
	return fmt.Sprintf("restore a save (farmsql restore), or, to begin anew, remove %s", path)
}

// Path returns the folder's directory.
func (f *Folder) Path() string { return f.path }

// Map maps the memory called name, which consists of lower case letters, digits, '-' and '_'. If it
// does not exist, Map creates it, filled with zeroes and without storage: see Memory.Reserve. size
// is a multiple of 8. ErrSize means that it exists with another size, ErrName that the name is not
// valid or mapped already.
func (f *Folder) Map(name string, size int64) (*Memory, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if size <= 0 || size%WordBytes != 0 {
		return nil, fmt.Errorf("%w: %d is not a positive multiple of 8", ErrSize, size)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mu.mapped == nil:
		return nil, ErrClosed
	case f.mu.mapped[name] != nil:
		return nil, fmt.Errorf("%w: %s is mapped already", ErrName, name)
	}
	file, err := openMemory(f.file(name), size)
	if err != nil {
		return nil, err
	}
	behind, err := fileBehind(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nvram: %w", err), file.Close())
	}
	behind.watch = f.watch
	words, err := mapFile(file, size)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	m := &Memory{words: words, file: behind}
	f.mu.mapped[name] = m
	return m, nil
}

// openMemory opens a memory's file, and gives it its size if it has none.
func openMemory(path string, size int64) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, PrivateFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.Size() == 0: // new, or a crash came before its first size
		err = file.Truncate(size)
	case info.Size() != size:
		err = fmt.Errorf("%w: %s has %d bytes, not %d", ErrSize, path, info.Size(), size)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f *Folder) file(name string) string { return filepath.Join(f.path, name+fileSuffix) }

// CheckName returns ErrName if name cannot be the name of a memory: see Folder.Map.
func CheckName(name string) error {
	if !goodName(name) {
		return fmt.Errorf("%w: %q", ErrName, name)
	}
	return nil
}

// goodName reports whether a memory may have this name: it becomes part of a file name.
func goodName(name string) bool {
	bad := func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) }
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, bad)
}

// Names returns the names of all memories, in order.
func (f *Folder) Names() ([]string, error) { return memoryNames(f.path) }

func memoryNames(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("nvram: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), fileSuffix); ok && goodName(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// MemorySize returns the size of the memory called name.
func (f *Folder) MemorySize(name string) (int64, error) {
	info, err := os.Stat(f.file(name))
	if err != nil {
		return 0, fmt.Errorf("nvram: %w", err)
	}
	return info.Size(), nil
}

// Remove removes the memory called name. Nobody may use it any more.
func (f *Folder) Remove(name string) error {
	release, err := f.Detach(name)
	return errors.Join(err, release())
}

// Detach is like Remove, for memory that may still be in use: it stays mapped, without a name,
// until release is called. The name may be mapped again immediately, to new memory. release is
// never nil, and must be called once.
func (f *Folder) Detach(name string) (release func() error, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	release = func() error { return nil }
	if m := f.mu.mapped[name]; m != nil {
		delete(f.mu.mapped, name)
		release = m.release
	}
	if err = os.Remove(f.file(name)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return release, err
}

// release unmaps the memory. Accesses panic from then on.
func (m *Memory) release() error {
	words := m.words
	m.words = nil
	unmap(words)
	return m.file.file.Close()
}

// Close writes everything to the device, marks the folder as clean, and unmaps its memories, which
// nobody may use any more. If it fails, the folder counts as one whose process was killed.
func (f *Folder) Close() error { return f.leave(true) }

// Abandon leaves the folder as a killed process would. It is for tests.
func (f *Folder) Abandon() error { return f.leave(false) }

// leave unmaps all memory and releases the folder. If clean is true and everything could be
// written, it marks the folder as clean.
func (f *Folder) leave(clean bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.mapped == nil {
		return nil
	}
	var errs []error
	if !f.held && (clean || memoryOnHeap) {
		errs = append(errs, f.flushLocked())
	}
	for _, m := range f.mu.mapped {
		errs = append(errs, m.release())
	}
	f.mu.mapped = nil
	if clean && !f.held && f.mu.unchecked == nil && errors.Join(errs...) == nil {
		errs = append(errs, syncDir(f.path), writeManifest(f.path, manifest{state: stateClean, boot: f.boot}))
	}
	return errors.Join(append(errs, f.lock.Close())...)
}

// flushLocked writes all mapped memory to the device.
func (f *Folder) flushLocked() error {
	var errs []error
	for _, m := range f.mu.mapped {
		errs = append(errs, flushFile(m.words, m.file.file))
	}
	return errors.Join(errs...)
}

// reserve reserves storage for n bytes at off.
func (f *mapped) reserve(off, n int64) error {
	err := uninterrupted(func() error { return unix.Fallocate(int(f.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n) })
	switch {
	case err == nil, errors.Is(err, unix.EOPNOTSUPP): // some file systems cannot reserve: stores may fault, as without Reserve
		f.watch.look()
		return nil
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w for %s", ErrNoSpace, f.file.Name())
	}
	return fmt.Errorf("nvram: reserve space for %s: %w", f.file.Name(), err)
}

// uninterrupted repeats a system call that a signal has ended: the runtime sends itself signals, and reserving much memory takes long.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
