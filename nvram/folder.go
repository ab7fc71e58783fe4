package nvram

import "os"

// mapped is a memory's file.
type mapped struct {
	name string
	file *os.File
}
