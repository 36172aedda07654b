package dialect

import (
	"net/url"
	"strings"
)

// segments returns the segments of an escaped URL path, decoded, without empty
// ones. A segment may hold an escaped slash.
func segments(path string) []string {
	all := make([]string, 0, 8)
	for s := range strings.SplitSeq(path, "/") {
		if s == "" {
			continue
		}
		if d, err := url.PathUnescape(s); err == nil {
			s = d
		}
		all = append(all, s)
	}
	return all
}

// at returns the segment that is i from the end, or "".
func at(segments []string, i int) string {
	if i >= len(segments) {
		return ""
	}
	return segments[len(segments)-1-i]
}

// isVersion says whether a path segment names a version, as v1 or v1beta do.
func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && '0' <= s[1] && s[1] <= '9'
}
