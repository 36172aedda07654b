package fingerprint

import (
	"fmt"
	"strings"
	"testing"
)

var otherKey = Key{9, 8, 7}

func TestParseKeyring(t *testing.T) {
	third := Key{3}
	for _, want := range []Keyring{
		{Current: testKey},
		Keyring{Current: testKey}.Rotate(otherKey),
		Keyring{Current: testKey}.Rotate(otherKey).Rotate(third),
		{Current: otherKey, Base: testKey},
	} {
		got, err := ParseKeyring(want.Reveal())
		if err != nil || got != want {
			t.Errorf("%d fields: another keyring, %v", len(strings.Fields(want.Reveal())), err)
		}
		if flat := strings.Join(strings.Fields(want.Reveal()), " "); flat != "" {
			if got, err := ParseKeyring(flat); err != nil || got != want {
				t.Errorf("on one line: another keyring, %v", err)
			}
		}
	}
}

func TestParseKeyringErrors(t *testing.T) {
	digits := strings.Repeat("ab", 32)
	other := strings.Repeat("cd", 32)
	for text, want := range map[string]string{
		"":                                     "empty",
		"current=":                             "field 1, current: fingerprint key: empty",
		"current=" + digits[:9]:                "field 1, current: fingerprint key: 9 bytes long",
		"current=" + digits + " base":          "field 2, base: fingerprint key: empty",
		"previous=" + digits:                   "no current key",
		digits + " " + other:                   "field 1: want current=, previous= or base=",
		"current=" + digits + " last=" + other: "field 2: want current=",
		"current=" + digits + " current=" + other:                       "field 2: a second current key",
		"current=" + digits + " previous=" + other:                      "without the base key",
		"base=" + digits + " current=" + digits + " previous=" + digits: "is the current one",
		"current=" + strings.Repeat("0", 64):                            "all zeros",
	} {
		r, err := ParseKeyring(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
			continue
		}
		if r != (Keyring{}) || strings.Contains(err.Error(), digits[:9]) || strings.Contains(err.Error(), other[:9]) {
			t.Errorf("%v: holds a key, or came beside one", err)
		}
	}
}

func TestKeyringIsMasked(t *testing.T) {
	r := Keyring{Current: testKey}.Rotate(otherKey)
	secret := strings.Fields(r.Reveal())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		text := fmt.Sprintf(verb, r)
		for _, s := range secret {
			_, digits, _ := strings.Cut(s, "=")
			if strings.Contains(text, digits) || !strings.Contains(text, "masked") {
				t.Errorf("%s shows a key", verb)
			}
		}
	}
}

// TestRotation checks that a text has the same passages and pseudonyms before
// and after, other prints, and that the way back leads to the old ones.
func TestRotation(t *testing.T) {
	one := Keyring{Current: testKey}
	two := one.Rotate(otherKey)
	three := two.Rotate(Key{3})
	if one.Before() != nil {
		t.Error("a way back from the first key")
	}
	for _, sample := range samples {
		rings := []Keyring{one, two, three}
		all := make([][]Print, len(rings))
		for i, r := range rings {
			all[i] = prints(r.Scheme(), sample.text)
		}
		for i := 1; i < len(rings); i++ {
			now, was, before := all[i], all[i-1], rings[i].Before()
			if len(now) != len(was) {
				t.Fatalf("%s: %d prints after rotation %d, %d before", sample.name, len(now), i, len(was))
			}
			for j, p := range now {
				if p.Hi == was[j].Hi || p.Lo == was[j].Lo {
					t.Errorf("%s: print %d keeps a half of its value", sample.name, j)
				}
				if got := before(p); got != was[j] {
					t.Errorf("%s: print %d leads back to %v, want %v", sample.name, j, got, was[j])
				}
			}
		}
	}
	if one.Scheme().Pseudonym("key", "a") != three.Scheme().Pseudonym("key", "a") {
		t.Error("a rotation changes pseudonyms")
	}
}

func TestKeyringID(t *testing.T) {
	one := Keyring{Current: testKey}
	two := one.Rotate(otherKey)
	seen := map[[16]byte]bool{}
	for _, r := range []Keyring{one, two, two.Rotate(testKey), {Current: otherKey}} {
		if seen[r.ID()] && r.ID() != one.ID() {
			t.Error("two keyrings have one ID")
		}
		seen[r.ID()] = true
	}
	if _, ok := one.PreviousID(); ok {
		t.Error("the first key has one before it")
	}
	if id, ok := two.PreviousID(); !ok || id != one.ID() {
		t.Error("the ID before the rotation is not the first")
	}
	if two.Rotate(testKey).ID() != one.ID() {
		t.Error("a return to the first key has another ID, though it makes the same prints")
	}
}
