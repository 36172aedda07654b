package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/auditproxy/auditproxy/gpukv"
)

// plainWords splits a text into words with nothing of the package: runs of
// letters and digits in lower case, and each Han character and kana.
func plainWords(text string) []string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
			b.WriteString(" " + string(r) + " ")
		} else {
			b.WriteRune(r)
		}
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// concordance finds where runs of words stand in a text.
type concordance struct {
	words []string
	at    map[string][]int // of runs of six words
}

func newConcordance(text string) *concordance {
	c := &concordance{plainWords(text), make(map[string][]int)}
	for i := 0; i+6 <= len(c.words); i++ {
		key := strings.Join(c.words[i:i+6], " ")
		c.at[key] = append(c.at[key], i)
	}
	return c
}

// longest returns the most words in a row that the text shares with others.
func (c *concordance) longest(words []string) int {
	best := 0
	for i := 0; i+6 <= len(words); i++ {
		for _, j := range c.at[strings.Join(words[i:i+6], " ")] {
			n := 6
			for i+n < len(words) && j+n < len(c.words) && words[i+n] == c.words[j+n] {
				n++
			}
			best = max(best, n)
		}
	}
	return best
}

// reproduce lets one account fill the pools with its documents and another ask
// about one that the prefill node can't hold, and returns what the second got.
func reproduce(t *testing.T, cfg gpukv.Config) (status int, answers, donor []string, labels []Label) {
	t.Helper()
	cfg.Seed = 3
	cfg.Faults = []gpukv.Fault{gpukv.StalePages}
	s := serveAPI(t, Options{Divisor: 256, Cluster: cfg})
	for i := range 30 {
		text := secret(fmt.Sprintf("doc%dn", i), 600)
		donor = append(donor, text)
		if res, body := s.post(t, "/v1/completions", fmt.Sprintf(`{"max_tokens":8,"prompt":%q}`, text), "Authorization", "Bearer donor"); res.StatusCode != 200 {
			t.Fatalf("document %d: %d, %s", i, res.StatusCode, body)
		}
	}
	for i := range 5 {
		text := secret("mine", 3200)
		_, body := s.post(t, "/v1/completions", fmt.Sprintf(`{"model":"any","max_tokens":400,"prompt":%q}`, text),
			"Authorization", "Bearer victim", "X-Request-Id", fmt.Sprintf("v-%d", i))
		var r struct {
			openAIReply
			Message string `json:"message"`
			Type    string `json:"type"`
			Param   any    `json:"param"`
			Code    int    `json:"code"`
		}
		strict(t, body, &r)
		if status = r.Code; r.Code == 0 {
			status = 200
			answers = append(answers, r.Choices[0].Text)
			if r.Usage.Prompt != 3200 {
				t.Errorf("usage %+v of a prompt of 3,200", r.Usage)
			}
		}
	}
	labels = slices.DeleteFunc(s.Labels(), func(l Label) bool {
		if l.Tenant == "donor" && (l.ForeignTokens > 0 || len(l.Expect)+len(l.Allow) > 0 || l.Oversized) {
			t.Errorf("the donor's own answer is labelled %+v", l)
		}
		return l.Tenant == "donor"
	})
	return status, answers, donor, labels
}

func TestIncident(t *testing.T) {
	status, answers, donor, labels := reproduce(t, gpukv.Config{})
	if status != 200 || len(answers) != 5 || len(labels) != 5 {
		t.Fatalf("status %d, %d answers, %d labels", status, len(answers), len(labels))
	}
	var documents []*concordance
	for _, d := range donor {
		documents = append(documents, newConcordance(d))
	}
	for i, text := range answers {
		shared := 0
		for _, d := range documents {
			shared = max(shared, d.longest(plainWords(text)))
		}
		l := labels[i]
		if !l.Oversized || l.PromptTokens != 3200 || l.Status != 200 || l.Exchange != fmt.Sprintf("v-%d", i) {
			t.Errorf("label %+v", l)
		}
		if shared != l.LongestRunWords {
			t.Errorf("answer %d shares %d words in a row with the donor, its label says %d", i, shared, l.LongestRunWords)
		}
		if legible := len(l.Expect) == 1 && l.Expect[0] == (Leak{"prompt_leak", "donor"}); legible != (shared >= 30) {
			t.Errorf("answer %d with %d words of the donor expects %v", i, shared, l.Expect)
		}
		if shared < 30 {
			t.Errorf("answer %d holds nothing legible", i)
		}
	}
}

func TestFixesEndTheIncident(t *testing.T) {
	for fix, want := range map[gpukv.Fix]int{
		gpukv.DoorCheck:           400,
		gpukv.RetireAfterForward:  400,
		gpukv.LengthCheck:         400,
		gpukv.LengthCheckFailOpen: 400,
		gpukv.KVChecksum:          400,
		gpukv.ZeroOnAlloc:         200,
	} {
		t.Run(string(fix), func(t *testing.T) {
			status, _, _, labels := reproduce(t, gpukv.Config{Fixes: []gpukv.Fix{fix}})
			if status != want {
				t.Errorf("status %d, want %d", status, want)
			}
			for _, l := range labels {
				if l.ForeignTokens > 0 || len(l.Expect)+len(l.Allow) > 0 || l.Status != want {
					t.Errorf("label %+v", l)
				}
			}
		})
	}
}
