package fingerprint_test

import (
	"fmt"
	"strings"

	"github.com/auditproxy/auditproxy/fingerprint"
)

func ExampleShingler() {
	key, err := fingerprint.ParseKey(strings.Repeat("5a", 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	scheme := fingerprint.NewScheme(key)

	prompt := scheme.Shingler()
	seen := map[[2]uint64]bool{}
	for _, p := range prompt.Finish(prompt.Append(nil, `Summarise: the tender closes on 4 March, and our offer
		stays four percent under the one of last year as long as the board agrees by Friday noon.`)) {
		seen[[2]uint64{p.Hi, p.Lo}] = true
	}

	// The answer to somebody else comes in pieces that end anywhere.
	answer := scheme.Shingler()
	text := ""
	var prints []fingerprint.Print
	for _, delta := range []string{
		"Sure! **The tender clo", "ses on 4 MARCH**, and our offer st", "ays\n> four percent under the one of\n> last ",
		"year as long as the Board agrees", " by noon.",
	} {
		text += delta
		prints = answer.Append(prints, delta)
	}
	for _, p := range answer.Finish(prints) {
		if seen[[2]uint64{p.Hi, p.Lo}] {
			fmt.Printf("word %d: %q\n", p.Word, text[p.Start:p.End])
		}
	}
	// Output:
	// word 8: "our offer stays\n> four percent under the one of\n> last year"
	// word 9: "offer stays\n> four percent under the one of\n> last year as"
	// word 11: "four percent under the one of\n> last year as long as"
}
