package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/auditproxy/auditproxy/detectors"
)

// Label is what is known of one exchange from another source: an engine's
// ground truth, or a reader. An exchange without a label is expected clean.
type Label struct {
	Exchange string     `json:"exchange"`
	Expect   []Expected `json:"expect"` // findings that must be there
	Allow    []Expected `json:"allow"`  // findings that may be there
}

// Expected names a finding; fields that are "" match any.
type Expected struct {
	Kind       detectors.Kind       `json:"kind"`
	Donor      string               `json:"donor"` // tenant
	Confidence detectors.Confidence `json:"confidence"`
	Channel    string               `json:"channel"`
}

func (x Expected) matches(f *detectors.Finding) bool {
	return (x.Kind == "" || x.Kind == f.Kind) &&
		(x.Donor == "" || x.Donor == f.Donor.Tenant) &&
		(x.Confidence == "" || x.Confidence == f.Confidence) &&
		(x.Channel == "" || x.Channel == f.Recipient.Channel)
}

// ReadLabels reads NDJSON.
func ReadLabels(r io.Reader) ([]Label, error) {
	var all []Label
	for in := newLines(r); ; {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var l Label
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", in.number, describe(err))
		}
		if l.Exchange == "" {
			return nil, fmt.Errorf("line %d: exchange: missing", in.number)
		}
		all = append(all, l)
	}
}

// Score holds findings against labels, exchange by exchange.
type Score struct {
	Leaks    int      // exchanges that are expected to leak
	Caught   int      // of them, those in which every expected finding is there
	Clean    int      // exchanges that are expected clean
	False    int      // exchanges with a finding, infos left out, that is neither expected nor allowed
	Expected int      // findings expected
	Found    int      // of them, found
	Missing  []string // and not found, as "exchange: kind of donor"
	Wrong    []string // findings neither expected nor allowed, likewise
}

// Compare scores the final findings of a run over so many exchanges.
func Compare(labels []Label, findings []detectors.Finding, exchanges int) Score {
	byExchange := map[string]*verdict{}
	at := func(id string) *verdict {
		if byExchange[id] == nil {
			byExchange[id] = &verdict{}
		}
		return byExchange[id]
	}
	for _, l := range labels {
		v := at(l.Exchange)
		v.expect, v.allow = append(v.expect, l.Expect...), append(v.allow, l.Allow...)
	}
	for i := range findings {
		if f := &findings[i]; f.State == detectors.Final {
			v := at(f.Recipient.Exchange)
			v.found = append(v.found, f)
		}
	}
	s := Score{Clean: exchanges}
	for _, id := range slices.Sorted(maps.Keys(byExchange)) {
		v := byExchange[id]
		missing, wrong := v.missing(), v.wrong()
		s.Expected += len(v.expect)
		s.Found += len(v.expect) - len(missing)
		for _, x := range missing {
			s.Missing = append(s.Missing, fmt.Sprintf("%s: %s of %s", id, x.Kind, x.Donor))
		}
		for _, f := range wrong {
			s.Wrong = append(s.Wrong, fmt.Sprintf("%s: %s of %s", id, f.Kind, f.Donor.Tenant))
		}
		if len(wrong) > 0 {
			s.False++
		}
		if len(v.expect) == 0 {
			continue
		}
		s.Leaks++
		s.Clean--
		if len(missing) == 0 {
			s.Caught++
		}
	}
	return s
}

// verdict is what is expected and what was found in one exchange.
type verdict struct {
	expect, allow []Expected
	found         []*detectors.Finding
}

// missing returns what is expected and was not found.
func (v *verdict) missing() (out []Expected) {
	for _, x := range v.expect {
		if !slices.ContainsFunc(v.found, x.matches) {
			out = append(out, x)
		}
	}
	return out
}

// wrong returns what was found and is neither expected nor allowed. Infos are
// never wrong.
func (v *verdict) wrong() (out []*detectors.Finding) {
	for _, f := range v.found {
		fits := func(x Expected) bool { return x.matches(f) }
		if f.Severity != detectors.Info && !slices.ContainsFunc(v.expect, fits) && !slices.ContainsFunc(v.allow, fits) {
			out = append(out, f)
		}
	}
	return out
}

// Perfect says whether every expected finding is there, and no wrong one.
func (s Score) Perfect() bool { return len(s.Missing) == 0 && len(s.Wrong) == 0 }

// Write prints the score, and each finding that is missing or wrong.
func (s Score) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "caught %d of %d, missed %d, false %d of %d clean exchanges; donors named %d of %d, wrong %d\n",
		s.Caught, s.Leaks, s.Leaks-s.Caught, s.False, s.Clean, s.Found, s.Expected, len(s.Wrong))
	for _, x := range s.Missing {
		fmt.Fprintf(w, "  missing: %s\n", x)
	}
	for _, x := range s.Wrong {
		fmt.Fprintf(w, "  wrong: %s\n", x)
	}
	return err
}
