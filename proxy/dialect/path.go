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

// lastSegments is the last segments of a path, the very last one first.
type lastSegments [6]string

// ends returns the last segments of an escaped URL path, decoded, without empty
// ones. Unlike [segments] it allocates nothing for most paths, since every
// dialect asks for them of every request.
func ends(path string) (e lastSegments) {
	for i := 0; i < len(e) && path != ""; {
		n := strings.LastIndexByte(path, '/')
		s := path[n+1:]
		path = path[:max(n, 0)]
		if s == "" {
			continue
		}
		if strings.IndexByte(s, '%') >= 0 {
			if d, err := url.PathUnescape(s); err == nil {
				s = d
			}
		}
		e[i] = s
		i++
	}
	return e
}

// at returns the segment that is i from the end, or "".
func at(e lastSegments, i int) string { return e[i] }

// isVersion says whether a path segment names a version, as v1 or v1beta do.
func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && '0' <= s[1] && s[1] <= '9'
}
