package fingerprint

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestSubkeys checks the derivation against crypto/hkdf and that no two uses
// share a key.
func TestSubkeys(t *testing.T) {
	seen := map[[passageKeyBytes]byte]string{}
	for _, label := range []string{labelWord, labelPassage, labelPseudonym, labelID} {
		var got [passageKeyBytes]byte
		subkey(testKey, label, got[:])
		use := strings.TrimPrefix(label, "auditproxy/fingerprint/")
		if want := modelSubkey(t, testKey, use, len(got)); !bytes.Equal(got[:], want) {
			t.Errorf("%s: got %x, want %x", label, got, want)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s have one subkey", label, other)
		}
		seen[got] = label
	}
}

func TestPseudonym(t *testing.T) {
	s := NewScheme(testKey)
	got := s.Pseudonym("key", "sk-secret")
	if !regexp.MustCompile(`^key-[a-z2-7]{16}$`).MatchString(got) {
		t.Errorf("got %q, want key- and 16 base32 characters", got)
	}
	mac := hmac.New(sha256.New, modelSubkey(t, testKey, "pseudonym/1", 32))
	mac.Write([]byte("\x03\x00\x00\x00\x00\x00\x00\x00keysk-secret"))
	if want := "key-" + strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)[:10])); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	other := testKey
	other[0]++
	hash := func(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }
	seen := map[string]string{}
	for name, pseudonym := range map[string]string{
		"the first":    got,
		"other value":  s.Pseudonym("key", "sk-secret2"),
		"other kind":   s.Pseudonym("tenant", "sk-secret"),
		"moved border": s.Pseudonym("keys", "k-secret"),
		"other key":    NewScheme(other).Pseudonym("key", "sk-secret"),
		"empty":        s.Pseudonym("key", ""),
	} {
		if first, ok := seen[hash(pseudonym)]; ok {
			t.Errorf("%s and %s have one hash", name, first)
		}
		seen[hash(pseudonym)] = name
	}
	if again := NewScheme(testKey).Pseudonym("key", "sk-secret"); again != got {
		t.Errorf("got %q from an equal scheme, want %q", again, got)
	}
}

// TestSchemeConcurrent shares one scheme between goroutines.
func TestSchemeConcurrent(t *testing.T) {
	s := NewScheme(testKey)
	text := samples[0].text
	want, name := prints(s, text), s.Pseudonym("key", text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if diff := printsDiff(want, prints(s, text)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got := s.Pseudonym("key", text); got != name {
					t.Errorf("got %q, want %q", got, name)
				}
			}
		})
	}
	wg.Wait()
}
