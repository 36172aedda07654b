package detectors

import (
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/store"
)

// Control is the reverse-time control: it looks in a prompt, just before it is
// indexed, for text of answers that other tenants were given earlier, by the
// rules by which [Passages] looks in an answer for text of earlier prompts.
//
// An answer can't have leaked from a prompt that had not come yet. So what the
// control finds is chance, common knowledge, and answers that people pass on:
// the very things that make false alarms, and as often, since it compares the
// same pairs the other way round. Its rate is a live estimate of the rate of
// false alarms, from the operator's own traffic. It is rather too high, for
// people do pass on answers.
//
// Texts holds the passages of each part of the prompt, in order. The matches
// are returned by confidence; they are no findings.
func Control(x *Exchange, texts [][]fingerprint.Print) []Confidence {
	s := &passageScan{x: x, hit: (*store.Match).Foretold}
	for i, prints := range texts {
		if len(prints) == 0 {
			continue
		}
		t := s.stream("prompt", i)
		t.prints = prints
		t.words = int(prints[len(prints)-1].Word) + fingerprint.PassageWords
	}
	var found []Confidence
	for _, f := range s.Finish(nil, time.Time{}) {
		if f.Leak() {
			found = append(found, f.Confidence)
		}
	}
	return found
}
