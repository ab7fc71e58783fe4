package nvram

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// Restore makes the folder at path what the newest complete save in dir holds,
// and returns the save's path. The folder may be missing, empty or lost; what it
// holds otherwise is overwritten only if so told, else the error is ErrNotEmpty.
// Other errors are ErrInUse, ErrUnwritable, ErrNoSave, ErrFormat and ErrCorrupt;
// after ErrCorrupt the folder stays unusable until another restore.
func Restore(path, dir string, overwrite bool, o Options) (save string, err error) {
	boot, err := o.boot()
	if err != nil {
		return "", err
	}
	n, err := newestSave(dir)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", fmt.Errorf("%w in %s", ErrNoSave, dir)
	}
	save = filepath.Join(dir, saveName(n))
	if err := os.MkdirAll(path, 0o777); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	lock, err := lockFolder(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !overwrite {
		if err := checkWorthless(path, boot); err != nil {
			return "", err
		}
	}
	return save, restoreInto(path, save, boot)
}

// checkWorthless returns an error if the folder holds memory that is not lost.
func checkWorthless(path, boot string) error {
	names, err := memoryNames(path)
	if err != nil || len(names) == 0 {
		return err
	}
	m, ok, err := readManifest(path)
	if err != nil {
		return err
	}
	if ok && (m.state == stateRestoring || m.state == stateOpen && m.boot != boot) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotEmpty, path)
}

// restoreInto replaces the memory in the locked directory path by that of save.
func restoreInto(path, save, boot string) error {
	index, err := os.ReadFile(filepath.Join(save, indexName))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	images, err := decodeIndex(index)
	if err != nil {
		return fmt.Errorf("%s: %w", save, err)
	}
	if err := writeManifest(path, manifest{stateRestoring, boot}); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	names, err := memoryNames(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(path, name+fileSuffix)); err != nil {
			return fmt.Errorf("%w: %w", ErrUnwritable, err)
		}
	}
	for _, m := range images {
		to := filepath.Join(path, m.name+fileSuffix)
		if err := readImage(filepath.Join(save, m.name+imageSuffix), to, m); err != nil {
			return err
		}
	}
	if err := errors.Join(syncDir(path), writeManifest(path, manifest{stateClean, boot})); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return nil
}

// readImage makes the memory file at path from its image, durably.
func readImage(from, path string, m image) error {
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
