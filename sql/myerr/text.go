package myerr

import "regexp"

// packages are the names that errors of this program begin with; go doc and its log say
// them, and clients, who know no packages, hear none.
const packages = `btree|call|catalog|cluster|compat|data|farm|farmsql|hash|index|kv|lease|membership|myerr|nvram|rdma|record|recovery|region|ring|row|shm|sql|transactions|txn|wire`

var (
	leadingPackages = regexp.MustCompile(`^(?:(?:` + packages + `): )+`)
	insidePackages  = regexp.MustCompile(`(: |\n)(?:(?:` + packages + `): )+`)
)

// PlainText is the text of an error of this program without the names of packages, with
// which each package that wraps an error begins.
func PlainText(text string) string {
	return insidePackages.ReplaceAllString(leadingPackages.ReplaceAllString(text, ""), "$1")
}

// WithoutPackage is PlainText for errors that may have been made of a client's texts: only
// what it begins with goes.
func WithoutPackage(text string) string { return leadingPackages.ReplaceAllString(text, "") }
