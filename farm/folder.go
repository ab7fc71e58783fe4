package farm

import "github.com/farmsql/farmsql/nvram"

var _ memories = (*nvram.Folder)(nil)

func openFolder(path string) (memories, error) { return nvram.OpenFolder(path, nvram.Options{}) }
