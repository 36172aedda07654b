package sim

import (
	"fmt"
	"strings"
)

// Code is written like prose, from templates with slots. Identifiers are made of
// the tenant's own invented types, so that no two tenants share more than the
// keywords.

var functionBodies = []string{
	`func (s *{type}) {Verb}{type2}(ctx context.Context, in {type3}) error {
	if in.{field} > {num} {
		return fmt.Errorf("{verb} {ref}: %d {things} of {type2}", in.{field})
	}
	return s.{field2}.{Verb}(ctx, in, {num2}, "{project}")
}
`,
	`def {verb}_{snake}(self, {snake2}, limit={num}):
    # {who} asked for this in {ref}
    for {snake3} in {snake2}.{field}:
        if {snake3}.{field2} == "{product}":
            self.{snake}.append({snake3})
    return self.{snake}[:limit]

`,
	`export async function {verb}{type}({snake}: {type2}): Promise<{type3}> {
  const {snake2} = await fetch("/{snake3}/{num}", { headers: { "x-{snake}": "{ref}" } });
  if (!{snake2}.ok) throw new Error("{type2} said " + {snake2}.status);
  return {snake2}.json() as {type3}; // {sur}, {date}
}
`,
	`-- {project}: {doc} {ref} for {firm}
CREATE TABLE {snake} (
  {field}_{snake2} bigint PRIMARY KEY,
  {field2}_{snake3} text NOT NULL DEFAULT '{product}',
  limit_{snake} numeric CHECK (limit_{snake} < {num})
);
`,
	`{snake}:
  image: registry.{domain}/{snake2}:{n}.{n}.{num}
  owner: {mail}
  env:
    {SNAKE}_{FIELD}: "{ref}"
    {SNAKE2}_LIMIT: "{num2}"

`,
	`{date} {time} WARN [{type}] {verb} of {type2} {ref} took {num} ms, {who} waits
{date} {time} ERROR [{type3}] {field} {num2} from {firm} not in {snake}
`,
}

var fields = []string{"Balance", "Region", "Quota", "Origin", "Lease", "Weight", "Tariff", "Seat", "Cutoff", "Parcel", "Grade", "Digest"}

// source returns code and configuration of at least so many tokens.
func (p *prose) source(tokens int) string {
	var b strings.Builder
	for n := 0; n < tokens; {
		from := b.Len()
		if p.rnd.IntN(5) == 0 {
			fmt.Fprintf(&b, "// file %s/%s_%s.go, %s\n// ", snake(pick(p.rnd, p.lex.types)), snake(pick(p.rnd, p.lex.types)),
				strings.ToLower(pick(p.rnd, fields)), p.lex.ref(p.rnd))
			p.sentence(&b)
			b.WriteByte('\n')
		}
		p.fillCode(&b, pick(p.rnd, functionBodies))
		n += CountTokens(b.String()[from:])
	}
	return b.String()
}

// fillCode fills a template in which names of a type recur.
func (p *prose) fillCode(b *strings.Builder, template string) {
	field, field2, verb := pick(p.rnd, fields), pick(p.rnd, fields), pick(p.rnd, verbs)
	r := []string{
		"{field}", field, "{field2}", field2, "{FIELD}", strings.ToUpper(field), "{verb}", verb, "{Verb}", capital(verb),
		"{domain}", p.lex.domain,
	}
	for _, k := range []string{"", "2", "3"} {
		t := pick(p.rnd, p.lex.types)
		r = append(r, "{type"+k+"}", t, "{snake"+k+"}", snake(t), "{SNAKE"+k+"}", strings.ToUpper(snake(t)))
	}
	p.fill(b, strings.NewReplacer(r...).Replace(template))
}

// snake turns camel case into snake case.
func snake(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c |= 0x20
		}
		b.WriteByte(c)
	}
	return b.String()
}
