package sdk

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// With stale pages, prompts larger than the prefill pool are answered from what
// other tenants wrote there. Whatever library both use, the findings log says
// whose prompt stands in whose answer, for every answer of which the engine says
// so.
func TestLeaks(t *testing.T) {
	for _, d := range sdks {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			const seed = 3
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			s := newStage(t, true, "--fault", "stale_pages")
			alice, bob := d.connect(t, s, "alice"), d.connect(t, s, "bob")
			exchanges := 0
			send := func(c *watched, id string, words, i int) reply {
				exchanges++
				a := ask{id: id, turns: []string{letter(rnd, words)}, maxTokens: 500}
				if i%2 == 0 {
					return c.whole(t.Context(), a)
				}
				return c.stream(t.Context(), a, func() {})
			}
			for i := range 40 {
				if r := send(alice, fmt.Sprintf("a-%d", i), 300, i); r.Err != "" {
					t.Fatalf("an ordinary prompt: %s", r.Err)
				}
			}
			for i := range 6 {
				if r := send(bob, fmt.Sprintf("b-%d", i), 1500, i); r.Err != "" || r.Wire.Status != http.StatusOK || r.Text[0] == "" {
					t.Errorf("prompt %d over the pool: %+v", i, r)
				}
			}
			m := s.audited(t, exchanges)
			d.covered(t, m, exchanges)
			expect := map[string]bool{} // exchanges whose answers leak
			for _, l := range s.labels(t) {
				for _, x := range l.Expect {
					if x.Donor != "alice" || l.Tenant != "bob" {
						t.Errorf("the engine itself leaked from %q to %q", x.Donor, l.Tenant)
					}
					expect[l.Exchange] = true
				}
			}
			if len(expect) < 2 {
				t.Errorf("the engine leaked into %d answers only", len(expect))
			}
			if code := s.sidecar.stop(t); code != 0 {
				t.Errorf("the sidecar ended with status %d", code)
			}
			tenant := map[string]string{} // by exchange, as the sidecar calls them
			for _, x := range readLines[exchange](t, s.capture) {
				tenant[x.ID] = x.Tenant
			}
			found := map[string]bool{}
			for _, f := range readLines[finding](t, s.findings) {
				if f.State != "final" {
					continue
				}
				found[f.Recipient.Exchange] = true
				if f.Kind != "prompt_leak" || !strings.HasPrefix(f.Donor.Exchange, "a-") || !strings.HasPrefix(f.Recipient.Exchange, "b-") ||
					f.Donor.Tenant != tenant["a-0"] || f.Donor.Tenant != tenant[f.Donor.Exchange] ||
					f.Recipient.Tenant != tenant["b-0"] || f.Recipient.Tenant != tenant[f.Recipient.Exchange] ||
					f.Donor.Tenant == f.Recipient.Tenant {
					t.Errorf("a finding that is not alice's prompt in bob's answer: %+v", f)
				}
			}
			want := [2]string{"alice", "bob"}
			if !strings.Contains(d.name, "by account") {
				want = [2]string{"key-", "key-"}
			}
			if !strings.HasPrefix(tenant["a-0"], want[0]) || !strings.HasPrefix(tenant["b-0"], want[1]) {
				t.Errorf("the tenants are called %q and %q", tenant["a-0"], tenant["b-0"])
			}
			for id := range expect {
				if !found[id] {
					t.Errorf("the leak into %s was missed", id)
				}
			}
			t.Logf("leaks found in %d answers, expected in %d", len(found), len(expect))
		})
	}
}
