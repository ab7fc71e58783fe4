package myerr

import "regexp"

// packages are the package names that errors of this program begin with. The server's log keeps
// them; they are removed from errors that clients see.
const packages = `btree|call|catalog|cluster|compat|data|exec|farm|farmsql|hash|index|join|kv|lease|lookup|membership|myerr|nvram|peerport|plan|rdma|record|recovery|region|ring|row|shm|sql|tcp|transactions|txn|verbs|wire`

var (
	leadingPackages = regexp.MustCompile(`^(?:(?:` + packages + `): )+`)
	insidePackages  = regexp.MustCompile(`(: |\n)(?:(?:` + packages + `): )+`)
)

// PlainText returns the text of an error of this program without package names, which each
// package that wraps an error puts in front.
func PlainText(text string) string {
	return insidePackages.ReplaceAllString(leadingPackages.ReplaceAllString(text, ""), "$1")
}

// WithoutPackage is like PlainText, for errors that may contain a client's text: it removes package
// names only from the beginning.
func WithoutPackage(text string) string { return leadingPackages.ReplaceAllString(text, "") }
