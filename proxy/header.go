package proxy

import (
	"net"
	"net/http"
	"strings"
)

// hopByHop are the headers that belong to one connection and end with it
// (RFC 9110, section 7.6.1, and those of earlier standards still in use).
// Http2-Settings goes with an upgrade to h2c, by which later traffic would
// pass around the audit.
var hopByHop = [...]string{
	"Connection",
	"Proxy-Connection",
	"Keep-Alive",
	"Proxy-Authenticate",
	"Proxy-Authorization",
	"Te",
	"Trailer",
	"Transfer-Encoding",
	"Upgrade",
	"Http2-Settings",
}

// stripHopByHop removes from h what ends with the connection it came on.
func stripHopByHop(h http.Header) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// hasToken says whether a comma-separated header field lists token, in
// whatever case.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// wantsWebSocket says whether r asks for the one upgrade that is let through.
// A handshake is a GET without a body, so nothing else can use it to pass an
// audited route in disguise.
func wantsWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ProtoMinor >= 1 &&
		!hasBody(r) && isWebSocket(r.Header)
}

func isWebSocket(h http.Header) bool {
	return hasToken(h["Connection"], "upgrade") &&
		len(h["Upgrade"]) == 1 && strings.EqualFold(strings.TrimSpace(h["Upgrade"][0]), "websocket")
}

func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// outgoingHeader returns the header that goes upstream for r: the client's,
// less what ends with its connection, with the client's address appended to
// X-Forwarded-For. X-Forwarded-Host and -Proto stay as a hop before us set
// them.
func outgoingHeader(r *http.Request, webSocket bool) http.Header {
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	stripHopByHop(h)
	if hasToken(r.Header["Te"], "trailers") {
		h["Te"] = []string{"trailers"}
	}
	if webSocket {
		h["Connection"] = []string{"Upgrade"}
		h["Upgrade"] = r.Header["Upgrade"]
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // or net/http would send its own
	}

	// Read from the request, since Connection can name these to be rid of them.
	forwarded := r.Header["X-Forwarded-For"]
	if ip, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		if len(forwarded) > 0 {
			ip = strings.Join(forwarded, ", ") + ", " + ip
		}
		forwarded = []string{ip}
	}
	setOrDelete(h, "X-Forwarded-For", forwarded)
	host, proto := r.Header["X-Forwarded-Host"], r.Header["X-Forwarded-Proto"]
	if len(host) == 0 && r.Host != "" {
		host = []string{r.Host}
	}
	if len(proto) == 0 {
		proto = []string{"http"}
		if r.TLS != nil {
			proto[0] = "https"
		}
	}
	setOrDelete(h, "X-Forwarded-Host", host)
	setOrDelete(h, "X-Forwarded-Proto", proto)
	return h
}

func setOrDelete(h http.Header, name string, values []string) {
	if len(values) == 0 {
		delete(h, name)
		return
	}
	h[name] = values
}
