package proxy

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/auditproxy/auditproxy/proxy/audit"
)

func TestNewChecksOptions(t *testing.T) {
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	good := parse("http://127.0.0.1:1")
	for _, tt := range []struct {
		name string
		o    Options
		want string // "" for none
	}{
		{"good", Options{Upstream: good, Engine: &audit.Engine{}}, ""},
		{"good path", Options{Upstream: parse("https://a.example/v1/"), Engine: &audit.Engine{}}, ""},
		{"no upstream", Options{Engine: &audit.Engine{}}, "no upstream"},
		{"no engine", Options{Upstream: good}, "no audit engine"},
		{"scheme", Options{Upstream: parse("ftp://a.example"), Engine: &audit.Engine{}}, `scheme "ftp"`},
		{"no scheme", Options{Upstream: parse("a.example:80/x"), Engine: &audit.Engine{}}, `scheme "a.example"`},
		{"no host", Options{Upstream: parse("http:///x"), Engine: &audit.Engine{}}, "no host"},
		{"credentials", Options{Upstream: parse("http://u:hush@a.example"), Engine: &audit.Engine{}}, "credentials"},
		{"query", Options{Upstream: parse("http://a.example?x"), Engine: &audit.Engine{}}, "query"},
		{"fragment", Options{Upstream: parse("http://a.example#x"), Engine: &audit.Engine{}}, "fragment"},
		{"slashes", Options{Upstream: parse("http://a.example//x"), Engine: &audit.Engine{}}, "two slashes"},
		{"negative copy", Options{Upstream: good, Engine: &audit.Engine{}, MaxRequestCopy: -1}, "MaxRequestCopy"},
		{"negative backlog", Options{Upstream: good, Engine: &audit.Engine{}, MaxBacklog: -1}, "MaxBacklog"},
		{"negative audits", Options{Upstream: good, Engine: &audit.Engine{}, MaxAudits: -1}, "MaxAudits"},
		{"negative record", Options{Upstream: good, Engine: &audit.Engine{}, MaxRecordBody: -1}, "MaxRecordBody"},
		{"negative idle", Options{Upstream: good, Engine: &audit.Engine{}, IdleTimeout: -1}, "IdleTimeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.o)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Error("the error tells the password")
			}
		})
	}
}

func TestCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		if left := c.wait(t.Context()); left != 0 {
			t.Errorf("%d left of none", left)
		}
		for i, want := range []bool{true, true, false} {
			if got := c.add(2); got != want {
				t.Errorf("add %d up to a limit of 2: got %t", i+1, got)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if left := c.wait(ctx); left != 2 {
			t.Errorf("%d left, want 2", left)
		}
		waited := make(chan int, 2)
		for range 2 {
			go func() { waited <- c.wait(t.Context()) }()
		}
		synctest.Wait()
		c.done()
		synctest.Wait()
		if len(waited) > 0 {
			t.Error("no longer waited for the last")
		}
		c.done()
		for range 2 {
			if left := <-waited; left != 0 {
				t.Errorf("%d left", left)
			}
		}
		if !c.add(1) {
			t.Error("no room after the last")
		}
	})
}

func TestAdjoins(t *testing.T) {
	block := make([]byte, 0, 10)
	a, b, c := block[0:3], block[3:5], block[6:8]
	for _, tt := range []struct {
		a, b []byte
		want bool
	}{
		{a, b, true},
		{b, c, false},
		{a, c, false},
		{a, make([]byte, 2), false},
		{make([]byte, 3), make([]byte, 3), false},
		{a, nil, false},
		{block[0:10], make([]byte, 1), false},
	} {
		if got := adjoins(tt.a, tt.b); got != tt.want {
			t.Errorf("adjoins(%p %d, %p %d) = %t", tt.a, len(tt.a), tt.b, len(tt.b), got)
		}
	}
}
