package sdk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Two engines with one seed that get the same requests in the same order say the
// same, with the same ids. So a library that asks one of them directly and the
// other through the sidecar must see the same. Only clocks differ: the time at
// which an answer was made, how long that took, and the Date of the response.
// Ids of exchanges are left to the engine here.

var sameReplies = cmp.Options{cmpopts.IgnoreUnexported(reply{}), cmpopts.EquateEmpty()}

// letter is a private text of n words.
func letter(rnd *rand.Rand, n int) string {
	w := make([]string, n)
	for i := range w {
		w[i] = fmt.Sprintf("%x", rnd.Uint64()>>30)
	}
	return strings.Join(w, " ")
}

// step is an exchange of the conversation that every library holds.
type step struct {
	name    string
	ask     ask
	refused bool
}

// conversation returns the next exchanges, given the replies so far.
func conversation(rnd *rand.Rand, many bool) []step {
	steps := []step{
		{"a letter", ask{turns: []string{"Answer this letter, please.\n\n" + letter(rnd, 300)}, maxTokens: 400}, false},
		{"a long answer", ask{system: "You are a clerk of the harbour.", turns: []string{"Of the tide & the <keeper>, \"in short\":\n" + letter(rnd, 60)}, maxTokens: 1500}, false},
		{"history", ask{system: "You are a clerk of the harbour.", turns: []string{letter(rnd, 50), letter(rnd, 40), letter(rnd, 30)}, maxTokens: 200}, false},
		{"cut short", ask{turns: []string{"What is the tide of the day?"}, maxTokens: 3}, false},
		{"Unicode", ask{turns: []string{"夜の港はどこですか。 Où est le port? 😀 \u2028" + letter(rnd, 20)}, maxTokens: 80}, false},
		{"over the window", ask{turns: []string{letter(rnd, 2100)}, maxTokens: 50}, true},
		{"over the pool", ask{turns: []string{letter(rnd, 1500)}, maxTokens: 50}, true},
	}
	if many {
		steps = append(steps, step{"three answers", ask{turns: []string{"Of the tide: " + letter(rnd, 60)}, n: 3, maxTokens: 200}, false})
	}
	return steps
}

func TestIdenticalResults(t *testing.T) {
	for _, d := range sdks {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			const seed = 11
			t.Logf("seed %d", seed)
			direct, through := newStage(t, false), newStage(t, true)
			var clients [2][2]*watched // by stage and tenant
			for i, s := range []*stage{direct, through} {
				for j, key := range []string{"alice", "bob"} {
					clients[i][j] = d.connect(t, s, key)
				}
			}
			n := 0
			for i, st := range conversation(rand.New(rand.NewPCG(seed, 0)), d.many) {
				for _, stream := range []bool{false, true} {
					n++
					var got [2]reply
					for side := range got {
						c := clients[side][i%2]
						if stream {
							got[side] = c.stream(t.Context(), st.ask, func() {})
						} else {
							got[side] = c.whole(t.Context(), st.ask)
						}
					}
					name := fmt.Sprintf("%s, streamed %t", st.name, stream)
					if problem := got[0].problem(st, stream); problem != "" {
						t.Errorf("%s: without the sidecar: %s: %+v", name, problem, got[0])
					}
					if diff := cmp.Diff(got[0], got[1], sameReplies...); diff != "" {
						t.Errorf("%s (-direct +through the sidecar):\n%s", name, diff)
					}
				}
			}
			m := through.audited(t, n)
			d.covered(t, m, n)
			noFindings(t, through, m)
		})
	}
}

// problem says what makes a reply unfit for a comparison.
func (r *reply) problem(st step, stream bool) string {
	switch {
	case r.Wire.Requests != 1:
		return "the library asked again"
	case st.refused && (r.Err == "" || strings.Join(r.Text, "") != ""):
		return "it was not refused"
	case st.refused && !stream && r.Wire.Status != 400:
		return "it was refused with another status"
	case st.refused:
		return ""
	case r.Err != "" || r.Wire.Status != 200:
		return "it failed"
	case len(r.Text) != st.ask.answers() || len(r.Reason) != len(r.Text) || len(r.Usage) < 2 || r.Usage[0] == 0 || r.Usage[1] == 0:
		return "it is not complete"
	}
	for i := range r.Text {
		if r.Text[i] == "" || r.Reason[i] == "" {
			return "a choice is empty"
		}
	}
	return ""
}

// noFindings stops the sidecar and holds it to having found nothing.
func noFindings(t *testing.T, s *stage, m map[string]float64) {
	t.Helper()
	if total(m, "auditproxy_findings_total{") != 0 || total(m, "auditproxy_leaks_total{") != 0 {
		t.Errorf("the metrics have %v", only(m, "auditproxy_findings_total{"))
	}
	if code := s.sidecar.stop(t); code != 0 {
		t.Errorf("the sidecar ended with status %d", code)
	}
	if log, err := os.ReadFile(s.findings); err != nil || len(log) > 0 {
		t.Errorf("the findings log (%v):\n%s", err, log)
	}
}

// A client that leaves in mid-stream has seen the same until then, the engine
// stops working for it, and the sidecar has audited what came.
func TestClientLeavesMidStream(t *testing.T) {
	const events = 5
	for _, d := range sdks {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			direct, through := newStage(t, false, "--decode-rate", "100"), newStage(t, true, "--decode-rate", "100")
			var got [2]reply
			for i, s := range []*stage{direct, through} {
				ctx, cancel := context.WithCancel(t.Context())
				n := 0
				r := d.connect(t, s, "alice").stream(ctx, ask{turns: []string{"Tell of the sea and of the people."}, maxTokens: 1900}, func() {
					if n++; n == events {
						cancel()
					}
				})
				cancel()
				if n < events || len(r.Reason) > 0 && strings.Join(r.Reason, "") != "" {
					t.Errorf("after %d events it ended with %q and %v", n, r.Reason, r.err)
				}
				// The library of Ollama takes a broken stream for the end of one.
				if !errors.Is(r.err, context.Canceled) && d.dialect != "ollama" {
					t.Errorf("it ended with %v", r.err)
				}
				var l []label
				if !until(t, func() bool { l = s.labels(t); return len(l) > 0 }) {
					t.Fatal("the engine does not notice")
				}
				if len(l) != 1 || !l[0].Aborted || l[0].Status != 499 {
					t.Errorf("the engine's labels are %+v", l)
				}
				// How many more events were on the way is a matter of time.
				got[i] = reply{ID: r.ID, Err: r.Err, Details: r.Details, Wire: r.Wire}
				if len(r.Events) > 0 {
					got[i].Events = [][]string{r.Events[0][:events]}
				}
			}
			if diff := cmp.Diff(got[0], got[1], sameReplies...); diff != "" {
				t.Errorf("(-direct +through the sidecar):\n%s", diff)
			}
			m := through.audited(t, 1)
			if m[`auditproxy_responses_total{coverage="part"}`] != 1 || m[`auditproxy_unaudited_total{reason="client_gone"}`] != 1 {
				t.Errorf("the metrics are %v", only(m, "auditproxy_"))
			}
			noFindings(t, through, m)
		})
	}
}
