package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// rawPath returns the path of a request as the client wrote it. The request
// line is the only place that has it: url.URL keeps a path decoded, and
// escapes on its own terms what it writes. Where the request's URL says
// something else than its line, a handler before us has rewritten it, and the
// URL counts.
func rawPath(r *http.Request) string {
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	if raw == r.URL.Path {
		return raw
	}
	if strings.HasPrefix(raw, "/") {
		if path, err := url.PathUnescape(raw); err == nil && path == r.URL.Path {
			return raw
		}
	}
	return r.URL.EscapedPath()
}

// target returns where a request with the given raw path goes. Path and query
// are kept byte for byte: an odd query is the upstream's to judge, and parsing
// would re-encode it.
func (p *Proxy) target(r *http.Request, raw string) *url.URL {
	u := &url.URL{
		Scheme:     p.scheme,
		Host:       p.host,
		RawQuery:   r.URL.RawQuery,
		ForceQuery: r.URL.ForceQuery,
	}
	if raw == "*" {
		u.Opaque = raw
		return u
	}
	path := p.base + raw
	if !strings.HasPrefix(path, "//") {
		u.Opaque = path // written as it is
		return u
	}
	// An opaque part that begins with two slashes would be taken for a host.
	u.RawPath = path
	u.Path, _ = url.PathUnescape(path) // was unescaped once already
	return u
}
