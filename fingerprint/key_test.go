package fingerprint

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const keyText = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"

func TestParseKey(t *testing.T) {
	for _, text := range []string{keyText, strings.ToUpper(keyText), "  " + keyText + "\r\n"} {
		k, err := ParseKey(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got := hex.EncodeToString(k[:]); got != keyText {
			t.Errorf("%q: got %s, want %s", text, got, keyText)
		}
	}
}

func TestParseKeyErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "fingerprint key: empty, want 64 hexadecimal digits"},
		{" \n", "fingerprint key: empty, want 64 hexadecimal digits"},
		{keyText[:63], "fingerprint key: 63 bytes long, want 64 hexadecimal digits"},
		{keyText + "0", "fingerprint key: 65 bytes long, want 64 hexadecimal digits"},
		{"0x" + keyText[:62], "fingerprint key: byte 2 is not a hexadecimal digit"},
		{keyText[:32] + " " + keyText[33:], "fingerprint key: byte 33 is not a hexadecimal digit"},
		{keyText[:63] + "@", "fingerprint key: byte 64 is not a hexadecimal digit"},
		{keyText[:63] + "G", "fingerprint key: byte 64 is not a hexadecimal digit"},
		{keyText[:63] + "`", "fingerprint key: byte 64 is not a hexadecimal digit"},
		{keyText[:63] + "\x1a", "fingerprint key: byte 64 is not a hexadecimal digit"},
	}
	for _, tt := range tests {
		k, err := ParseKey(tt.text)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%d bytes: got error %v, want %s", len(tt.text), err, tt.want)
		}
		if k != (Key{}) {
			t.Errorf("%d bytes: got a key beside the error", len(tt.text))
		}
	}
}

func TestNewKey(t *testing.T) {
	a, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if a == b || a == (Key{}) {
		t.Error("two new keys are equal, or empty")
	}
}

// TestKeyIsMasked looks for any byte of the key in whatever prints it.
func TestKeyIsMasked(t *testing.T) {
	k := Key{}
	for i := range k {
		k[i] = 0xc3
	}
	type config struct {
		Name string
		Key  Key
		More []Key
	}
	c := config{"c", k, []Key{k}}
	var got []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%08b", "%o", "%c", "%U", "%t"} {
		got = append(got, fmt.Sprintf(verb, k), fmt.Sprintf(verb, &k), fmt.Sprintf(verb, []Key{k}), fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c))
	}
	got = append(got, fmt.Sprint(k), k.String())
	for _, verb := range []string{"%v", "%+v", "%#v", "%x"} {
		if got, want := fmt.Sprintf(verb, NewScheme(k)), "fingerprint.Scheme"; got != want {
			t.Errorf("%s: got %q, want %q", verb, got, want)
		}
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, string(b))
	for _, s := range got {
		for _, secret := range []string{"c3", "C3", "195", "11000011", "303", "Ã", "\xc3"} {
			if strings.Contains(s, secret) {
				t.Errorf("%q holds the key as %q", s, secret)
			}
		}
	}
	if got, want := k.String(), "fingerprint.Key(masked)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
