package dialect

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// aiGateway speaks Cloudflare's AI Gateway, which passes other APIs on.
//
// Behind /v1/{account}/{gateway}/{provider} the rest of the path and the bodies
// are the provider's own, so the dialect of the rest reads them. The universal
// endpoint, /v1/{account}/{gateway} itself, takes a list of requests to several
// providers, each with the path and the body that the provider's API has. It
// tries one after the other until one answers; all of them are prompts, and the
// response's header cf-aig-step says which one the answer belongs to.
type aiGateway struct{}

func (aiGateway) Name() string { return "ai-gateway" }

func (aiGateway) About() About {
	return About{
		API:     "Cloudflare AI Gateway: the universal endpoint; provider paths go to the dialect of the rest",
		Paths:   []string{"POST /v1/{account}/{gateway}", "POST /v1/{account}/{gateway}/{provider}/{rest}", "POST /v1/{account}/{gateway}/compat/chat/completions"},
		Formats: []string{formatJSON, formatSSE, "those of the providers"},
	}
}

// providers are the segments that name a provider. How its paths begin, where
// the gateway leaves that out, is the value.
var providers = map[string]string{
	"workers-ai": "workers-ai", "openai": "v1", "anthropic": "", "google-ai-studio": "", "google-vertex-ai": "", "azure-openai": "",
	"aws-bedrock": "", "groq": "v1", "grok": "", "mistral": "v1", "perplexity-ai": "", "deepseek": "v1", "cerebras": "v1", "cohere": "",
	"openrouter": "v1", "fireworks": "v1", "huggingface": "models", "replicate": "", "baseten": "v1", "parallel": "v1", "fal": "",
	"ideogram": "", "cartesia": "", "deepgram": "", "elevenlabs": "", "compat": "v1",
}

// isAccount says whether a segment looks like the id of an account: 32
// hexadecimal digits.
func isAccount(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// passedOn returns the path that a provider's own API has for what a path of
// the gateway asks of it, or "" if it asks no provider.
func passedOn(path string) string {
	if strings.Count(path, "/") < 4 {
		return ""
	}
	s := segments(path)
	for i := 0; i+4 < len(s); i++ {
		if s[i] != "v1" {
			continue
		}
		if _, ok := providers[s[i+3]]; ok {
			return providerPath(s[i+3], s[i+4:])
		}
		if isAccount(s[i+1]) { // a provider of the account's own
			return "/" + strings.Join(escapeAll(s[i+4:]), "/")
		}
	}
	return ""
}

// escapeAll escapes segments again where a slash or a percent sign in them
// would be taken for more than it is.
func escapeAll(s []string) []string {
	all := make([]string, len(s))
	for i := range s {
		all[i] = strings.NewReplacer("%", "%25", "/", "%2F").Replace(s[i])
	}
	return all
}

// providerPath returns the path that a provider's own API has for the rest of
// a path of the gateway.
func providerPath(provider string, rest []string) string {
	switch begin := providers[provider]; {
	case provider == "azure-openai" && len(rest) > 2: // resource, deployment
		rest = append([]string{"openai", "deployments"}, rest[1:]...)
	case provider == "huggingface" && len(rest) != 2:
	case begin != "" && !isVersion(rest[0]):
		rest = append([]string{begin}, rest...)
	}
	return "/" + strings.Join(escapeAll(rest), "/")
}

// universal says whether a path is that of the universal endpoint.
func universal(path string) bool {
	s := ends(path)
	return at(s, 2) == "v1" && isAccount(at(s, 1))
}

func (aiGateway) Match(method, path string) bool {
	return method == "POST" && (passedOn(path) != "" || universal(path))
}

// route implements router.
func (g aiGateway) route(all []Dialect, method, path string) Dialect {
	rest := passedOn(path)
	if rest == "" {
		return universalEndpoint{g, all}
	}
	if d := Find(all, method, rest); d != nil {
		return passed{d, rest}
	}
	return generic{}
}

// passed is a dialect whose requests come under another path than its own.
type passed struct {
	Dialect
	path string
}

// Prompt implements Dialect.
func (p passed) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return p.Dialect.Prompt(body, p.path, h)
}

// Error implements Refuser.
func (p passed) Error(status int, message string, h Header) []byte {
	if r, ok := p.Dialect.(Refuser); ok {
		return r.Error(status, message, h)
	}
	return nil
}

// universalEndpoint is the universal endpoint, with the dialects that its
// entries may speak.
type universalEndpoint struct {
	aiGateway
	all []Dialect
}

func (g aiGateway) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return universalEndpoint{g, All()}.Prompt(body, path, h)
}

// maxSteps bounds the entries of one request to the universal endpoint.
const maxSteps = 64

// step is one entry of a request to the universal endpoint.
type step struct {
	dialect Dialect
	prompt  Prompt
}

// Prompt implements Dialect. The model is only known if there is one entry;
// otherwise the response's decoder names it.
func (u universalEndpoint) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	var r request
	v, _, reason := r.json(body, h)
	if !v.IsObject() && !v.IsArray() {
		if v.Exists() {
			r.misfit("the body", -1, v)
		}
		return r.end()
	}
	known, list := reason == "", []string{"universal"}
	for _, e := range entries(v) {
		if len(r.prompt.asked.steps) == maxSteps {
			r.fault(ReasonTooLong, "too many entries")
			break
		}
		s, parts, err := u.step(e)
		r.prompt.asked.steps = append(r.prompt.asked.steps, s)
		if r.prompt.Model = s.prompt.Model; len(r.prompt.asked.steps) > 1 {
			r.prompt.Model = ""
		}
		r.prompt.Stream = r.prompt.Stream || s.prompt.Stream
		r.prompt.Parts = append(r.prompt.Parts, parts...)
		for _, reason := range s.prompt.Unseen {
			r.unseen(reason)
		}
		if e := (*Error)(nil); errors.As(err, &e) {
			r.fault(e.Reason, "an entry could not be read")
		}
		known = known && s.prompt.Canonical != [32]byte{}
		list = append(list, string(s.prompt.Canonical[:]))
	}
	if known && r.faults.first == nil {
		r.prompt.Canonical = digest(list...)
	}
	return r.end()
}

// entries returns the entries of a request, which may be one without a list.
func entries(v gjson.Result) []gjson.Result {
	if v.IsObject() {
		return []gjson.Result{v}
	}
	var all []gjson.Result
	for _, e := range v.All() {
		if len(all) > maxSteps {
			break
		}
		all = append(all, e)
	}
	return all
}

// step reads one entry; its parts come apart.
func (u universalEndpoint) step(v gjson.Result) (step, []Part, error) {
	provider := word(v.Get("provider"), 64)
	endpoint := strings.TrimPrefix(word(v.Get("endpoint"), 1024), "/")
	path, _, _ := strings.Cut(endpoint, "?")
	rest := segments(path)
	if len(rest) == 0 {
		rest = []string{""}
	}
	path = providerPath(provider, rest)
	d := Find(u.all, "POST", path)
	if d == nil {
		d = generic{}
	}
	p, err := d.Prompt([]byte(v.Get("query").Raw), path, nil)
	parts := p.Parts
	p.Parts = nil
	return step{d, p}, parts, err
}

func (aiGateway) Decoder(p Prompt, h Header) Decoder {
	steps := p.asked.steps
	i := 0
	if h != nil {
		if n, err := strconv.Atoi(h.Get("cf-aig-step")); err == nil {
			i = n
		}
	}
	if i < 0 || i >= len(steps) {
		return newDecoder(p, h, form{read: newShapes().read, remember: true})
	}
	return stepDecoder{steps[i].dialect.Decoder(steps[i].prompt, h), steps[i].prompt.Model}
}

// stepDecoder decodes the answer to one entry.
type stepDecoder struct {
	Decoder
	model string // that the entry asked for
}

// Info implements Decoder.
func (d stepDecoder) Info() Info {
	info := d.Decoder.Info()
	if info.Model == "" {
		info.Model = d.model
	}
	return info
}

func (aiGateway) Error(status int, message string, h Header) []byte {
	return workersAI{}.Error(status, message, h)
}
