package dialect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	base := `{"model":"m","messages":[{"role":"system","content":"Rules"},{"role":"user","content":"Hi"}],"temperature":0.5,"n":1}`
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"itself", base, base, true},
		{"order, space, escapes", base, `{ "n":1, "temperature": 5e-1,"messages":[{"content":"R\u0075les","role":"system"},{"content":"Hi","role":"user"}],"model":"m"}`, true},
		{"how it is delivered, for whom", base, strings.Replace(base, `{"model"`, `{"stream":true,"stream_options":{"include_usage":true},"user":"u","metadata":{"a":1},"safety_identifier":"s","prompt_cache_key":"k","store":true,"model"`, 1), true},
		{"null", base, strings.Replace(base, `"n":1`, `"n":1,"stop":null`, 1), true},
		{"parts of text", base, strings.Replace(base, `"Hi"`, `[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]`, 1), true},
		{"numbers", base, strings.Replace(base, `"n":1`, `"n":1.0`, 1), true},
		{"two parts", base, strings.Replace(base, `"Hi"`, `[{"type":"text","text":"H"},{"type":"text","text":"i"}]`, 1), false},
		{"text", base, strings.Replace(base, "Hi", "Ho", 1), false},
		{"system", base, strings.Replace(base, "Rules", "Rule", 1), false},
		{"role", base, strings.Replace(base, "system", "developer", 1), false},
		{"model", base, strings.Replace(base, `"m"`, `"m2"`, 1), false},
		{"parameter", base, strings.Replace(base, "0.5", "0.6", 1), false},
		{"unknown field", base, strings.Replace(base, `"n":1`, `"n":1,"new":{}`, 1), false},
		{"order of messages", `{"messages":["a","b"]}`, `{"messages":["b","a"]}`, false},
		{"a user further down", `{"tools":[{"user":"a"}]}`, `{"tools":[{"user":"b"}]}`, false},
		{"a string is no number", `{"n":1}`, `{"n":"1"}`, false},
		{"a list is no element", `{"a":["x"]}`, `{"a":"x"}`, false},
		{"empty ones", `{"a":{}}`, `{"a":[]}`, false},
		{"names run together", `{"a":"bc"}`, `{"ab":"c"}`, false},
		{"strings run together", `{"a":["b","c"]}`, `{"a":["bc"]}`, false},
		{"pictures", `{"i":"data:` + strings.Repeat("A", 200) + `"}`, `{"i":"data:` + strings.Repeat("A", 199) + `B"}`, false},
		{"null in a list", `{"a":[null]}`, `{"a":[]}`, false},
		{"large numbers", `{"a":90071992547409931}`, `{"a":90071992547409932}`, false},
		{"nested deeper", `{"a":[["x"]]}`, `{"a":["x"]}`, false},
	} {
		a, b := canonical("api", "m", []byte(tt.a)), canonical("api", "m", []byte(tt.b))
		if (a == b) != tt.same {
			t.Errorf("%s: got the same %t, want %t", tt.name, a == b, tt.same)
		}
	}
	if canonical("api", "m", []byte(base)) == canonical("other", "m", []byte(base)) {
		t.Error("two APIs have one digest")
	}
	if canonical("api", "m", []byte(base)) == canonical("api", "m2", []byte(base)) {
		t.Error("two models of the path have one digest")
	}
}

// TestCanonicalForm writes random values in random ways, and changes them.
func TestCanonicalForm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	seen := map[[32]byte]string{}
	for range 2000 {
		v := map[string]any{"v": randomJSON(rnd, 4)}
		first := spaced(rnd, v)
		want := canonical("api", "", []byte(first))
		for range 3 {
			again := spaced(rnd, v)
			if canonical("api", "", []byte(again)) != want {
				t.Fatalf("%q and %q differ", first, again)
			}
		}
		// Another value with this digest is the same but for what is left out.
		form := fmt.Sprintf("%#v", withoutNulls(v))
		if other, ok := seen[want]; ok && other != form {
			t.Fatalf("%s and %s have one digest", form, other)
		}
		seen[want] = form
	}
}

// withoutNulls returns v without the members that are null.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			if e = withoutNulls(e); e != nil {
				m[k] = e
			}
		}
		return m
	case []any:
		l := []any{}
		for _, e := range v {
			l = append(l, withoutNulls(e))
		}
		return l
	}
	return v
}

// TestCanonicalIsBounded digests bodies that are nothing but objects, members
// or nesting.
func TestCanonicalIsBounded(t *testing.T) {
	if raceEnabled {
		t.Skip("it takes long, and has nothing to race")
	}
	many := []byte(`{"a":[` + strings.Repeat(`{},`, maxCanonical) + `{}]}`)
	if canonical("", "", many) != [32]byte{} {
		t.Error("a body of too many objects has a digest")
	}
	wide := []byte("{" + strings.Repeat(`"":1,`, maxCanonical+1) + `"":1}`)
	if canonical("", "", wide) != [32]byte{} {
		t.Error("a body of too many members has a digest")
	}
	deep := []byte(strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth))
	if canonical("", "", deep) == [32]byte{} {
		t.Error("a deep body has no digest")
	}
	c := canon{src: []byte("[" + strings.Repeat("1e300,", 100_000) + "1]")}
	c.value(0)
	if len(c.buf) > 2*len(c.src) {
		t.Errorf("%d bytes became %d", len(c.src), len(c.buf))
	}
}

// FuzzCanonical holds that any JSON has a digest, that white space is none of
// it, and that nothing panics.
func FuzzCanonical(f *testing.F) {
	for _, tr := range transcripts(f) {
		if tr.request != nil {
			f.Add(tr.request)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, why := readJSON(data)
		if why != "" {
			canonical("", "", data) // must not panic
			t.Skip()
		}
		var b strings.Builder
		for i := 0; i < len(v.Raw); i++ { // white space wherever it may stand
			if v.Raw[i] == '"' {
				end := endOfString([]byte(v.Raw), i)
				b.WriteString(v.Raw[i : end+1])
				i = end
				continue
			}
			if strings.IndexByte("{}[],:", v.Raw[i]) >= 0 {
				b.WriteString(" " + v.Raw[i:i+1] + "\n")
			} else {
				b.WriteByte(v.Raw[i])
			}
		}
		if canonical("", "", data) != canonical("", "", []byte(b.String())) {
			t.Errorf("%q: white space changes the digest", data)
		}
	})
}
