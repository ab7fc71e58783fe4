package nvram

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	savePrefix = "save-"
	indexName  = "index"
	// usedName is the file with the number of the save that was the newest when a folder came into
	// use. That save is therefore older than the folder's memory.
	usedName = "IN-USE"
	// savesKept is the number of complete saves that are kept. OpenFolder uses only the newest; the
	// one before it is kept for operators.
	savesKept = 2
)

func saveName(n uint64) string { return fmt.Sprintf("%s%08d", savePrefix, n) }

// saveNumbers returns the numbers of the complete saves in dir, in ascending order. A save is complete
// once it has been renamed to its final name.
func saveNumbers(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("nvram: %w", err)
	}
	var numbers []uint64
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), savePrefix)
		if n, err := strconv.ParseUint(digits, 10, 64); ok && err == nil && e.Name() == saveName(n) {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// newestSave returns the number of the newest complete save in dir, or 0.
func newestSave(dir string) (uint64, error) {
	numbers, err := saveNumbers(dir)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	return numbers[len(numbers)-1], nil
}

// NewestSave returns the path of the newest complete save in dir, or "".
func NewestSave(dir string) (string, error) {
	path, _, err := Options{Saves: dir}.newest()
	return path, err
}

// UsedFile is the name of a file in a directory of saves. The file says that a folder has been in
// use since the newest save. Without the file, OpenFolder restores that save if the folder is gone.
const UsedFile = usedName

// newest returns the path of the newest complete save, or "", and whether a folder has been in use
// since.
func (o Options) newest() (path string, used bool, err error) {
	if o.Saves == "" {
		return "", false, nil
	}
	n, err := newestSave(o.Saves)
	if err != nil {
		return "", false, err
	}
	if n > 0 {
		path = filepath.Join(o.Saves, saveName(n))
	}
	b, err := os.ReadFile(filepath.Join(o.Saves, usedName))
	if errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("nvram: %w", err)
	}
	newestAtUse, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return "", false, fmt.Errorf("%w: %s", ErrFormat, filepath.Join(o.Saves, usedName))
	}
	return path, newestAtUse >= n, nil
}

// markUsed records that the folder's memory will be newer than every save that exists now.
func (o Options) markUsed() error {
	if o.Saves == "" {
		return nil
	}
	if err := os.MkdirAll(o.Saves, PrivateFolder); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	n, err := newestSave(o.Saves)
	if err != nil {
		return err
	}
	if err := ReplaceFile(filepath.Join(o.Saves, usedName), ".next", fmt.Appendln(nil, n)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return nil
}

// prune removes the files that a newer save has made useless: interrupted saves, and complete ones
// except the newest savesKept.
func prune(dir string) error {
	numbers, err := saveNumbers(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range numbers[:max(len(numbers)-savesKept, 0)] {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, saveName(n))))
	}
	unfinished, err := filepath.Glob(filepath.Join(dir, savePrefix+"*"+unfinishedSuffix))
	for _, path := range unfinished {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(append(errs, err)...)
}
