package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// clear names what it stands for, so that a table can be read.
func clearPseudonym(kind, value string) string { return kind + "-<" + value + ">" }

func TestTenantRules(t *testing.T) {
	long := strings.Repeat("x", 129)
	for _, tt := range []struct {
		name, trusted, path string
		header              []string
		want                string
		unknown             bool
	}{
		{"address", "", "/v1/x", nil, "addr-<192.0.2.7>", true},
		{"bearer", "", "/v1/x", []string{"Authorization", "Bearer sk-1"}, "key-<sk-1>", false},
		{"bearer in lower case", "", "/v1/x", []string{"Authorization", "bearer  sk-1 "}, "key-<sk-1>", false},
		{"other schemes are no keys", "", "/v1/x", []string{"Authorization", "Basic dTpw"}, "addr-<192.0.2.7>", true},
		{"empty bearer", "", "/v1/x", []string{"Authorization", "Bearer "}, "addr-<192.0.2.7>", true},
		{"empty bearer, other key", "", "/v1/x", []string{"Authorization", "Bearer ", "X-Api-Key", "k"}, "key-<k>", false},
		{"azure", "", "/v1/x", []string{"Api-Key", "k1"}, "key-<k1>", false},
		{"anthropic", "", "/v1/x", []string{"X-Api-Key", "k2"}, "key-<k2>", false},
		{"google", "", "/v1/x", []string{"X-Goog-Api-Key", "k3"}, "key-<k3>", false},
		{"the same key by any header", "", "/v1/x", []string{"X-Goog-Api-Key", "sk-1"}, "key-<sk-1>", false},
		{"google in the query", "", "/v1beta/models/m:generateContent?alt=sse&key=k3", nil, "key-<k3>", false},
		{"query escaped", "", "/v1/x?%6bey=a%2Bb", nil, "key-<a+b>", false},
		{"odd query", "", "/v1/x?%zz&key=&key=%zz&key=k3", nil, "key-<k3>", false},
		{"no key in the query", "", "/v1/x?apikey=k&KEY=k", nil, "addr-<192.0.2.7>", true},
		{"header before query", "", "/v1/x?key=k4", []string{"X-Goog-Api-Key", "k3"}, "key-<k3>", false},
		{"aws signature", "", "/model/m/invoke", []string{"Authorization", "AWS4-HMAC-SHA256 Credential=AKID1/20260901/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=ab"}, "key-<AKID1>", false},
		{"aws signature without spaces", "", "/model/m/invoke", []string{"Authorization", "AWS4-HMAC-SHA256 SignedHeaders=host,Credential=AKID1/20260902/eu-west-1/bedrock/aws4_request,Signature=cd"}, "key-<AKID1>", false},
		{"aws signature of nobody", "", "/model/m/invoke", []string{"Authorization", "AWS4-HMAC-SHA256 Signature=cd"}, "addr-<192.0.2.7>", true},
		{"aws signature in the query", "", "/model/m/invoke?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID1%2F20260901%2Fus-east-1%2Fbedrock%2Faws4_request", nil, "key-<AKID1>", false},
		{"bearer before others", "", "/v1/x", []string{"X-Api-Key", "k2", "Authorization", "Bearer sk-1"}, "key-<sk-1>", false},

		{"account", "", "/client/v4/accounts/acme/ai/run/m", []string{"Authorization", "Bearer sk-1"}, "acme", false},
		{"account escaped", "", "/client/v4/accounts/%61cme/ai", nil, "acme", false},
		{"segment escaped", "", "/client/v4/%61ccounts/acme/ai", nil, "acme", false},
		{"slash escaped", "", "/client/v4/accounts%2Facme/ai", nil, "acme", false},
		{"dots resolved", "", "/accounts/victim/../acme/ai", nil, "acme", false},
		{"escaped dots resolved", "", "/accounts/victim/%2e%2E%2Facme/ai", nil, "acme", false},
		{"dots beyond the root", "", "/../../accounts/./acme/ai", nil, "acme", false},
		{"no id", "", "/accounts//ai", nil, "addr-<192.0.2.7>", true},
		{"nothing behind the id", "", "/accounts/acme", nil, "addr-<192.0.2.7>", true},
		{"no segment", "", "/myaccounts/acme/ai", nil, "addr-<192.0.2.7>", true},
		{"account like a key", "", "/accounts/key-<sk-1>/ai", nil, "account-<key-<sk-1>>", false},
		{"account like an address", "", "/accounts/addr-<192.0.2.7>/ai", nil, "account-<addr-<192.0.2.7>>", false},
		{"account like an account", "", "/accounts/account-x/ai", nil, "account-<account-x>", false},
		{"account like a header", "", "/accounts/header-x/ai", nil, "account-<header-x>", false},
		{"account with a prefix's letters", "", "/accounts/keyring/ai", nil, "keyring", false},
		{"account with a space", "", "/accounts/a%20b/ai", nil, "account-<a b>", false},
		{"account not ASCII", "", "/accounts/caf%C3%A9/ai", nil, "account-<caf\u00e9>", false},
		{"long account", "", "/accounts/" + long + "/ai", nil, "account-<" + long + ">", false},

		{"header not believed", "", "/v1/x", []string{"X-Tenant", "victim", "Authorization", "Bearer sk-1"}, "key-<sk-1>", false},
		{"header believed", "x-tenant", "/accounts/acme/ai", []string{"X-Tenant", "trusted", "Authorization", "Bearer sk-1"}, "trusted", false},
		{"header missing", "X-Tenant", "/accounts/acme/ai", nil, "acme", false},
		{"header empty", "X-Tenant", "/v1/x", []string{"X-Tenant", "", "X-Api-Key", "k"}, "key-<k>", false},
		{"header before the hop's", "X-Tenant", "/v1/x", []string{"X-Tenant", "victim", "X-Tenant", "trusted"}, "trusted", false},
		{"header like a key", "X-Tenant", "/v1/x", []string{"X-Tenant", "key-<sk-1>"}, "header-<key-<sk-1>>", false},
		{"header with control bytes", "X-Tenant", "/v1/x", []string{"X-Tenant", "a\tb"}, "header-<a\tb>", false},
		{"other header", "X-Tenant", "/v1/x", []string{"X-Tenant-Id", "victim"}, "addr-<192.0.2.7>", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules, err := newTenants(TenantRules{TrustedHeader: tt.trusted, Pseudonym: clearPseudonym})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("POST", tt.path, nil)
			r.RemoteAddr = "192.0.2.7:1234"
			for i := 0; i < len(tt.header); i += 2 {
				r.Header.Add(tt.header[i], tt.header[i+1])
			}
			got, known := rules.of(r)
			if got != tt.want || known == tt.unknown {
				t.Errorf("got %q, known %t; want %q, %t", got, known, tt.want, !tt.unknown)
			}
		})
	}
}

func TestTenantAddresses(t *testing.T) {
	rules, err := newTenants(TenantRules{Pseudonym: clearPseudonym})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ addr, want string }{
		{"192.0.2.7:1234", "addr-<192.0.2.7>"},
		{"192.0.2.7:99", "addr-<192.0.2.7>"},
		{"[2001:db8::1]:443", "addr-<2001:db8::1>"},
		{"@", "addr-<@>"},
		{"", "addr-<>"},
	} {
		got, known := rules.of(&http.Request{Header: http.Header{}, URL: httptest.NewRequest("GET", "/", nil).URL, RemoteAddr: tt.addr})
		if got != tt.want || known {
			t.Errorf("address %q: got %q, known %t; want %q", tt.addr, got, known, tt.want)
		}
	}
}

// TestOwnPseudonyms is the key that a proxy draws where none is given.
func TestOwnPseudonyms(t *testing.T) {
	a, err := newTenants(TenantRules{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := newTenants(TenantRules{})
	if err != nil {
		t.Fatal(err)
	}
	one := a.pseudonym("key", "sk-1")
	switch {
	case one != a.pseudonym("key", "sk-1"):
		t.Error("one value has two names")
	case one == a.pseudonym("key", "sk-2"), one[3:] == a.pseudonym("addr", "sk-1")[4:]:
		t.Error("two values, or kinds, share a name")
	case one == b.pseudonym("key", "sk-1"):
		t.Error("two proxies share a key")
	case !strings.HasPrefix(one, "key-") || !sane(one) || strings.Contains(one, "sk-1"):
		t.Errorf("the name is %q", one)
	}
}

func TestSpoofedTenantOverTheWire(t *testing.T) {
	g := newRig(t, serve(t, func(http.ResponseWriter, *http.Request) {}), setup{options: Options{
		Tenants: TenantRules{Pseudonym: clearPseudonym},
	}})
	g.must("GET", "/v1/models", nil, "X-Tenant", "victim", "X-Forwarded-For", "203.0.113.9", "Authorization", "Bearer mine")
	if rec := g.record(); rec.Tenant != "key-<mine>" {
		t.Errorf("tenant %q", rec.Tenant)
	}
	g.must("GET", "/v1/models", nil, "X-Forwarded-For", "203.0.113.9")
	if rec := g.record(); rec.Tenant != "addr-<127.0.0.1>" {
		t.Errorf("tenant %q", rec.Tenant)
	}
}

// TestKeysStayHidden looks for the credentials of requests in everything that
// the proxy says of them: log, records, summaries and metrics.
func TestKeysStayHidden(t *testing.T) {
	const key = "swordfish"
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	g := newRig(t, nowhere, setup{options: Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), Registerer: metrics}})
	for _, c := range []struct{ path, header, value string }{
		{path: "/v1beta/models/m:generateContent?key=" + key},
		{"/v1/messages", "X-Api-Key", key},
		{"/v1/chat/completions", "Authorization", "Bearer " + key},
		{"/openai/deployments/d/chat/completions", "Api-Key", key},
		{"/v1beta/models/m:generateContent", "X-Goog-Api-Key", key},
		{"/model/m/invoke", "Authorization", "AWS4-HMAC-SHA256 Credential=" + key + "/20260901/us-east-1/bedrock/aws4_request, Signature=" + key},
	} {
		header := []string{"X-Other", "1"}
		if c.header != "" {
			header = []string{c.header, c.value}
		}
		res, body := g.must("POST", c.path, strings.NewReader(`{"prompt":"hello"}`), header...)
		if res.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: got status %d", c.path, res.StatusCode)
		}
		record, err := json.Marshal(g.record())
		if err != nil {
			t.Fatal(err)
		}
		s := g.summary()
		if !strings.HasPrefix(s.Tenant, kindKey+"-") {
			t.Errorf("%s %s: the tenant is %q", c.path, c.header, s.Tenant)
		}
		for what, text := range map[string]string{"body": string(body), "record": string(record), "summary": fmt.Sprintf("%+v", s)} {
			if strings.Contains(text, key) {
				t.Errorf("%s %s: the key stands in the %s: %s", c.path, c.header, what, text)
			}
		}
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(families); strings.Contains(all, key) || strings.Contains(log.String(), key) || log.Len() == 0 {
		t.Errorf("the key stands in the metrics or the log, or there is no log:\n%s", log.String())
	}
}
