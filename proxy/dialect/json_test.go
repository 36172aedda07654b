package dialect

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestMend(t *testing.T) {
	for _, tt := range []struct{ cut, want string }{
		{`{`, `{}`},
		{`[`, `[]`},
		{`{"a`, `{}`},
		{`{"a"`, `{}`},
		{`{"a":`, `{}`},
		{`{"a": tr`, `{}`},
		{`{"a":"x`, `{"a":"x"}`},
		{`{"a":"x\`, `{"a":"x"}`},
		{`{"a":"x\n\u00`, `{"a":"x\n"}`},
		{`{"a":"x\\`, `{"a":"x\\"}`},
		{`{"a":"x\"`, `{"a":"x\""}`},
		{`{"a":"x","b`, `{"a":"x"}`},
		{`{"a":"x",`, `{"a":"x"}`},
		{`{"a":["x", "y`, `{"a":["x", "y"]}`},
		{`{"a":["x", 12`, `{"a":["x"]}`},
		{`{"a":[{"b":"]}"}`, `{"a":[{"b":"]}"}]}`},
		{`{"a":{"b":{}`, `{"a":{"b":{}}}`},
		// What is no cut value stays as it is.
		{``, ``},
		{`x`, ``},
		{`"a`, ``},
		{`{"a":1}`, ``},
		{`{"a":1}}`, ``},
		{`{"a":1]`, ``},
		{`{"a":1} x`, ``},
	} {
		got, ok := mend([]byte(tt.cut))
		if string(got) != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: got %q, %t, want %q", tt.cut, got, ok, tt.want)
		}
	}
}

// TestMendEveryPrefix cuts one value everywhere.
func TestMendEveryPrefix(t *testing.T) {
	whole := []byte(` {"a": [1, -2.5e3, true, null, {"b": "c\n\ud83d\ude00 \\"}], "d": {}, "e\"": "f", "g": [[]], "h": ""}`)
	if !gjson.ValidBytes(whole) {
		t.Fatal("the case is not JSON")
	}
	for i := 2; i < len(whole); i++ {
		v, reason := readCutJSON(whole[:i])
		if reason != ReasonTruncated || !gjson.Valid(v.Raw) {
			t.Errorf("cut at %d: got %q with reason %q", i, v.Raw, reason)
		}
	}
	if _, reason := readCutJSON(whole); reason != "" {
		t.Errorf("the whole: got reason %q", reason)
	}
}

func TestShallow(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name string
		json string
		want bool
	}{
		{"as deep as allowed", nest(maxDepth), true},
		{"deeper", nest(maxDepth + 1), false},
		{"many, side by side", "[" + strings.Repeat("{},", 4*maxDepth) + "{}]", true},
		{"brackets in strings", `["` + strings.Repeat(`[{\"`, 4*maxDepth) + `"]`, true},
		{"brackets behind strings", `["\\",` + nest(maxDepth) + `]`, false},
	} {
		if !gjson.Valid(tt.json) {
			t.Fatalf("%s: the case is not JSON", tt.name)
		}
		if got := shallow([]byte(tt.json)); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestDeepNesting reads bodies that are nothing but brackets, as far as the
// limits allow them.
func TestDeepNesting(t *testing.T) {
	for _, d := range All() {
		deep := bytes.Repeat([]byte("["), MaxEvent+1)
		if d.Name() == "openai-chat" {
			deep = bytes.Repeat([]byte("["), MaxBody)
		}
		want := ReasonShape
		if d.Name() == "generic" {
			want = ReasonNoDialect
		}
		if _, err := d.Prompt(deep, "", nil); reason(err) != want {
			t.Errorf("%s: prompt: got %v, want reason %s", d.Name(), err, want)
		}
		if a := decodeWhole(d.Decoder(Prompt{}, typed("application/json")), deep); reasonOf(a.Err) != ReasonShape {
			t.Errorf("%s: response: got %v, want reason %s", d.Name(), a.Err, ReasonShape)
		}
	}
}

// TestDeepSchema keeps the walk of a tool's schema within its own limit.
func TestDeepSchema(t *testing.T) {
	schema := func(n int) []byte {
		return []byte(`{"tools":[{"name":"f","parameters":` + strings.Repeat(`{"properties":`, n) +
			`{"description":"inner"}` + strings.Repeat(`}`, n) + `}]}`)
	}
	p, err := openAIChat{}.Prompt(schema(maxSchemaDepth), "", nil)
	if err != nil || len(p.Parts) != 2 || p.Parts[1].Text != "inner" {
		t.Errorf("within the limit: got %v, %v", p.Parts, err)
	}
	p, err = openAIChat{}.Prompt(schema(maxSchemaDepth+1), "", nil)
	if reason(err) != ReasonTooLong || len(p.Parts) != 1 {
		t.Errorf("over the limit: got %v, %v", p.Parts, err)
	}
}

// reason returns the reason of a dialect's error.
func reason(err error) Reason {
	if err == nil {
		return ""
	}
	return errorIn(err).Reason
}
