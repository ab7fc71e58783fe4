package nvram

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// A Saved is a save that is to be restored.
type Saved struct {
	path   string
	images []image
}

// OpenSave opens the save at path, and checks that it is complete, without reading its data: Stage
// checks the bytes. Errors are ErrNoSave, ErrFormat and ErrCorrupt.
func OpenSave(path string) (*Saved, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSave, err)
	}
	index, err := os.ReadFile(filepath.Join(path, indexName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	images, err := decodeIndex(index)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, m := range images {
		file := filepath.Join(path, m.name+imageSuffix)
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if info.Size() != m.size {
			return nil, fmt.Errorf("%w: %s has %d bytes, not %d", ErrCorrupt, file, info.Size(), m.size)
		}
	}
	return &Saved{path, images}, nil
}

// DataBytes returns the size of the data to restore, which is the room that a restore takes.
func (s *Saved) DataBytes() (n int64) {
	for _, m := range s.images {
		for _, c := range m.chunks {
			n += int64(c.n)
		}
	}
	return n
}

// stagingName is the subfolder for restored memory until it replaces the folder's memory.
const stagingName = "restoring"

// A Restoration restores a save into a folder in three steps: Stage, which may fail and does not
// change the folder's memory, Replace, and Finish. So several folders can be restored all together
// or not at all. If the process is killed between Replace and Finish, OpenFolder refuses the folder.
type Restoration struct {
	save *Saved
	path string
	boot string
	lock *os.File
	made bool // BeginRestore has created the folder
}

// BeginRestore locks the folder at path, into which the save will be restored. The folder may
// be missing, empty or lost. Any other content is replaced only if overwrite is set; otherwise
// the error is ErrNotEmpty. Other errors are ErrInUse, ErrUnwritable and ErrFormat.
func BeginRestore(path string, s *Saved, overwrite bool, o Options) (*Restoration, error) {
	boot, err := o.boot()
	if err != nil {
		return nil, err
	}
	_, missing := os.Stat(path)
	if err := os.MkdirAll(path, PrivateFolder); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	r := &Restoration{save: s, path: path, boot: boot, lock: lock, made: missing != nil}
	if !overwrite {
		err = checkWorthless(path, boot)
	}
	if err == nil {
		err = r.unstage()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return r, nil
}

// checkWorthless returns an error if the folder holds memory that is not lost: neither a reboot nor an
// interrupted restore has destroyed it.
func checkWorthless(path, boot string) error {
	names, err := memoryNames(path)
	if err != nil || len(names) == 0 {
		return err
	}
	m, ok, err := readManifest(path)
	if err != nil {
		return err
	}
	isLost := m.state == stateRestoring || (m.state == stateOpen && m.boot != boot)
	if ok && isLost {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotEmpty, path)
}

func (r *Restoration) staging() string { return filepath.Join(r.path, stagingName) }

// unstage removes the files that Stage has written.
func (r *Restoration) unstage() error {
	if err := os.RemoveAll(r.staging()); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return nil
}

// Stage reads the whole save into files next to the folder's files. moved reports progress, as for
// Folder.SaveAs. Errors are ErrCorrupt, ErrUnwritable and the file system's.
func (r *Restoration) Stage(moved func(bytes int64)) error {
	if err := os.Mkdir(r.staging(), PrivateFolder); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	for _, m := range r.save.images {
		from := filepath.Join(r.save.path, m.name+imageSuffix)
		if err := readImage(from, filepath.Join(r.staging(), m.name+fileSuffix), m, moved); err != nil {
			return err
		}
	}
	return syncDir(r.staging())
}

// Replace replaces the folder's memory by the staged memory.
func (r *Restoration) Replace() error {
	if err := r.replace(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return nil
}

// replace replaces the folder's memories by the staged ones. First it marks the folder as being
// restored: then, if replace ends early, the folder cannot be opened, but can be restored again.
func (r *Restoration) replace() error {
	if err := writeManifest(r.path, manifest{state: stateRestoring, boot: r.boot}); err != nil {
		return err
	}
	names, err := memoryNames(r.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(r.path, name+fileSuffix)); err != nil {
			return err
		}
	}
	for _, m := range r.save.images {
		if err := os.Rename(filepath.Join(r.staging(), m.name+fileSuffix), filepath.Join(r.path, m.name+fileSuffix)); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(r.staging()), syncDir(r.path))
}

// Finish marks the folder as closed, and unlocks it.
func (r *Restoration) Finish() error {
	err := writeManifest(r.path, manifest{state: stateClean, boot: r.boot})
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return errors.Join(err, r.lock.Close())
}

// Leave unlocks the folder as it is.
func (r *Restoration) Leave() error { return r.lock.Close() }

// Cancel undoes Stage and unlocks the folder. It must be called before Replace.
func (r *Restoration) Cancel() error {
	err := r.unstage()
	if r.made {
		err = errors.Join(err, os.RemoveAll(r.path))
	}
	return errors.Join(err, r.lock.Close())
}

// readImage makes the memory file at path from an image in a save, durably.
func readImage(from, path string, m image, moved func(int64)) error {
	in, err := openDirect(from, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	defer in.Close() // read only
	out, err := openDirect(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	err = out.plain.Truncate(m.size)
	if err == nil {
		err = eachParallel(len(m.chunks), func(i int, buffer []byte) error {
			c := m.chunks[i]
			if moved != nil {
				defer moved(int64(c.n))
			}
			b := buffer[:c.n]
			if _, err := in.file(c.off, b).ReadAt(b, c.off); err != nil {
				return fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
			if crc32.Checksum(b, castagnoli) != c.crc {
				return fmt.Errorf("%w: %s at %#x", ErrCorrupt, from, c.off)
			}
			_, err := out.file(c.off, b).WriteAt(b, c.off)
			return err
		})
	}
	return errors.Join(err, out.plain.Sync(), out.Close())
}
