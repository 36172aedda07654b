package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// TenantRules say which tenant a request belongs to. They are tried in this
// order, and the first that applies decides:
//
//  1. TrustedHeader, if one is named and the request has it,
//  2. the account id in a path that holds /accounts/{id}/,
//  3. a keyed hash of the API key (Authorization: Bearer, the access key id of
//     an AWS signature in Authorization, Api-Key, X-Api-Key, X-Goog-Api-Key, or
//     the query's key or X-Amz-Credential, in this order),
//  4. a keyed hash of the client's address. Such requests are counted as of
//     an unknown tenant, and belong to one of their own for each address.
//
// A header value or account id is the tenant's name as it is, if it is
// printable ASCII without spaces, of at most 128 bytes, and doesn't begin like
// one of the pseudonyms; otherwise a pseudonym stands for it. So an account
// can't take the name of somebody else's key.
type TenantRules struct {
	// TrustedHeader names the request header in which a trusted hop says who
	// the tenant is. Of several values the last counts, which is the one that
	// the nearest hop appended. "" believes no header.
	TrustedHeader string
	// Pseudonym returns a name for value that tells nothing of it: kind, a
	// hyphen, and a keyed hash of kind and value in printable ASCII, of 128
	// bytes at most. The kinds are "header", "account", "key" and "addr".
	// fingerprint.Scheme has such a method. nil means a key drawn anew for
	// each Proxy, so that pseudonyms differ from run to run.
	Pseudonym func(kind, value string) string
}

// The kinds of pseudonyms, which are also what they begin with.
const (
	kindHeader  = "header"
	kindAccount = "account"
	kindKey     = "key"
	kindAddr    = "addr"
)

// maxName bounds tenants' names and exchanges' ids, in bytes.
const maxName = 128

type tenants struct {
	header    string // canonical; "" for none
	pseudonym func(kind, value string) string
}

func newTenants(r TenantRules) (tenants, error) {
	t := tenants{header: http.CanonicalHeaderKey(r.TrustedHeader), pseudonym: r.Pseudonym}
	if t.pseudonym == nil {
		var key [32]byte
		if _, err := rand.Read(key[:]); err != nil {
			return tenants{}, fmt.Errorf("proxy: key for pseudonyms: %w", err)
		}
		t.pseudonym = func(kind, value string) string {
			mac := hmac.New(sha256.New, key[:])
			mac.Write([]byte(kind))
			mac.Write([]byte{0})
			mac.Write([]byte(value))
			return kind + "-" + hex.EncodeToString(mac.Sum(nil)[:10])
		}
	}
	return t, nil
}

// of returns the tenant of r. known is false if only its address tells it from
// others.
func (t *tenants) of(r *http.Request) (tenant string, known bool) {
	if t.header != "" {
		if v := r.Header[t.header]; len(v) > 0 && v[len(v)-1] != "" {
			return t.name(kindHeader, v[len(v)-1]), true
		}
	}
	if id := accountID(r.URL.Path); id != "" {
		return t.name(kindAccount, id), true
	}
	if key := apiKey(r.Header, r.URL.RawQuery); key != "" {
		return t.pseudonym(kindKey, key), true
	}
	addr := r.RemoteAddr
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	return t.pseudonym(kindAddr, addr), false
}

// name returns value itself where it can be told from every pseudonym.
func (t *tenants) name(kind, value string) string {
	if !sane(value) {
		return t.pseudonym(kind, value)
	}
	for _, k := range [...]string{kindHeader, kindAccount, kindKey, kindAddr} {
		if strings.HasPrefix(value, k) && strings.HasPrefix(value[len(k):], "-") {
			return t.pseudonym(kind, value)
		}
	}
	return value
}

// sane says whether s can be a name: printable ASCII without spaces, neither
// empty nor long.
func sane(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// accountID returns the {id} of a path that holds /accounts/{id}/, or "". The
// path is read decoded and with its dots resolved, as the most lenient upstream
// would, so that no spelling of it is served for one account and counted for
// another.
func accountID(path string) string {
	if !strings.Contains(path, "accounts") {
		return ""
	}
	var segments []string
	for s := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		switch s {
		case ".":
		case "..":
			segments = segments[:max(0, len(segments)-1)]
		default:
			segments = append(segments, s)
		}
	}
	for i := 0; i+2 < len(segments); i++ {
		if segments[i] == "accounts" && segments[i+1] != "" {
			return segments[i+1]
		}
	}
	return ""
}

// apiKey returns the key that a request shows, or "". Google's APIs take it in
// the query as well as in a header. What an AWS signature is made with stays
// secret, so the id of that key stands for it.
func apiKey(h http.Header, query string) string {
	if v := h["Authorization"]; len(v) > 0 {
		scheme, key, _ := strings.Cut(v[0], " ")
		key = strings.TrimSpace(key)
		switch {
		case key == "":
		case strings.EqualFold(scheme, "Bearer"):
			return key
		case strings.HasPrefix(scheme, "AWS4-"): // AWS4-HMAC-SHA256, AWS4-ECDSA-P256-SHA256
			if id := accessKeyID(key); id != "" {
				return id
			}
		}
	}
	for _, name := range [...]string{"Api-Key", "X-Api-Key", "X-Goog-Api-Key"} {
		if v := h[name]; len(v) > 0 && v[0] != "" {
			return v[0]
		}
	}
	if key := queryValue(query, "key"); key != "" {
		return key
	}
	id, _, _ := strings.Cut(queryValue(query, "X-Amz-Credential"), "/")
	return id
}

// accessKeyID returns the first part of the Credential of an AWS signature,
// which is a list like Credential=AKID/date/region/service/aws4_request,
// SignedHeaders=..., Signature=....
func accessKeyID(fields string) string {
	for f := range strings.SplitSeq(fields, ",") {
		if scope, ok := strings.CutPrefix(strings.TrimSpace(f), "Credential="); ok {
			id, _, _ := strings.Cut(scope, "/")
			return id
		}
	}
	return ""
}

// queryValue returns the first value that a query has for name and that is not
// empty. What is odd elsewhere in the query doesn't matter.
func queryValue(query, name string) string {
	for pair := range strings.SplitSeq(query, "&") {
		k, v, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(k); err != nil || k != name {
			continue
		}
		if v, err := url.QueryUnescape(v); err == nil && v != "" {
			return v
		}
	}
	return ""
}
