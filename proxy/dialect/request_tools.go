package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// tools reads the tools that the model may call.
func (r *request) tools(where string, v gjson.Result) {
	if !v.IsArray() {
		if !isNull(v) {
			r.misfit(strings.TrimSuffix(where, "[]"), -1, v)
		}
		return
	}
	i := 0
	for _, t := range v.All() {
		if t.IsObject() {
			r.tool(where, i, t)
		} else {
			r.misfit(where, i, t)
		}
		i++
	}
}

// tool reads one tool, in OpenAI's form or in the flat one of Workers AI.
func (r *request) tool(where string, i int, v gjson.Result) {
	for _, key := range [...]string{"function", "custom"} {
		if f := v.Get(key); f.IsObject() {
			v = f
			break
		}
	}
	for k, f := range v.All() {
		switch k.Str {
		case "name", "description", "code": // code: Workers AI's embedded functions
			r.text(System, where+"."+k.Str, i, f)
		case "parameters", "input_schema":
			r.schema(f, 0)
		case "format": // of a custom tool's input
			r.text(System, where+".format.definition", i, f.Get("definition"))
			r.text(System, where+".format.grammar.definition", i, f.Get("grammar.definition"))
		}
	}
}

// schema adds the strings of a JSON schema that models read: descriptions and
// the values that are spelled out.
func (r *request) schema(v gjson.Result, depth int) {
	if depth > maxSchemaDepth {
		r.fault(ReasonTooLong, "a schema is nested too deep")
		return
	}
	if v.IsArray() {
		for _, e := range v.All() {
			if e.Type == gjson.JSON {
				r.schema(e, depth+1)
			}
		}
		return
	}
	if !v.IsObject() {
		return
	}
	for k, f := range v.All() {
		switch {
		case f.Type == gjson.String && (k.Str == "description" || k.Str == "const"):
			r.add(System, stringOf(f))
		case f.IsArray() && (k.Str == "enum" || k.Str == "examples"):
			for _, e := range f.All() {
				if e.Type == gjson.String {
					r.add(System, stringOf(e))
				}
			}
		case f.Type == gjson.JSON:
			r.schema(f, depth+1)
		}
	}
}
