package proxy

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzTarget asks for targets of every spelling that the server takes, and
// compares what would go upstream.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"/", "/?", "/a%2Fb;x?y=%zz&&z;", "//a//b", "/{x}|\"\xff#?#", "*", "/%", "/a?b?c", "http://h/p?q", "/..//./%2e",
	} {
		f.Add(s)
	}
	p := &Proxy{scheme: "http", host: "upstream.example"}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(s, " \r\n") {
			t.Skip("ends the request line's field")
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + s + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			t.Skip("the server refuses it")
		}
		if !strings.HasPrefix(s, "/") {
			t.Skip("not in origin form")
		}
		u := p.target(r, rawPath(r))
		if u.Host != "upstream.example" || u.Scheme != "http" {
			t.Fatalf("%q goes to %s://%s", s, u.Scheme, u.Host)
		}
		got, want := u.RequestURI(), s
		if strings.HasPrefix(s, "//") {
			// Escaped anew where need be, but the same path.
			path, err := url.PathUnescape(strings.SplitN(got, "?", 2)[0])
			if err != nil || path != r.URL.Path {
				t.Fatalf("%q arrives as %q", s, got)
			}
			return
		}
		if got != want {
			t.Fatalf("%q arrives as %q", s, got)
		}
	})
}

// FuzzTenantName looks for values that take a name which isn't theirs.
func FuzzTenantName(f *testing.F) {
	for _, s := range []string{"", "acme", "key-", "key-x", "addr-x", "account-x", "header-x", "a b", "caf\u00e9", "\x00", strings.Repeat("x", 129)} {
		f.Add(s)
	}
	rules, err := newTenants(TenantRules{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := rules.name(kindAccount, s)
		if !sane(got) {
			t.Fatalf("%q is named %q", s, got)
		}
		if got != s && got != rules.pseudonym(kindAccount, s) {
			t.Fatalf("%q is named %q", s, got)
		}
		for _, kind := range []string{kindHeader, kindKey, kindAddr} {
			if strings.HasPrefix(got, kind+"-") {
				t.Fatalf("%q is named %q, like a %s", s, got, kind)
			}
		}
		if got == s && strings.HasPrefix(got, kindAccount+"-") {
			t.Fatalf("%q passes for a pseudonym", s)
		}
	})
}
