package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Handler returns the engine's HTTP server: the routes of Workers AI, OpenAI,
// Anthropic, Gemini, Ollama and SGLang for tenants, SGLang's for operators, and
// /sim/labels for the ground truth.
//
// The tenant of a request is the account in the URL, else the bearer token, else
// the key in X-Api-Key or X-Goog-Api-Key, else "anonymous". The label of its
// answer goes by the X-Request-Id header if the client sent a sane one (1 to 128
// letters, digits, '-', '_', '.' and ':'), else by the rid of SGLang's route,
// else by the id that the engine gives the response. In every case the response
// says it in X-Request-Id.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			cw := &statusWriter{ResponseWriter: w, status: http.StatusOK}
			defer func() { e.gauges.response(pattern, cw.status) }()
			h(cw, r)
		})
	}
	route("POST /client/v4/accounts/{account}/ai/run/{model...}", e.runWorkersAI)
	route("POST /client/v4/accounts/{account}/ai/v1/chat/completions", e.chatCompletions)
	route("POST /v1/chat/completions", e.chatCompletions)
	route("POST /v1/completions", e.completions)
	route("POST /client/v4/accounts/{account}/ai/v1/messages", e.anthropicMessages)
	route("POST /v1/messages", e.anthropicMessages)
	route("POST /v1beta/models/{call...}", e.generateContent)
	route("POST /api/chat", e.ollamaChat)
	route("POST /api/generate", e.ollamaGenerate)
	route("POST /generate", e.generate)
	route("PUT /generate", e.generate)
	route("GET /v1/models", e.models)
	route("GET /server_info", e.serverInfo)
	route("GET /get_server_info", e.serverInfo)
	route("GET /metrics", e.metrics)
	route("GET /health", func(http.ResponseWriter, *http.Request) {})
	route("GET /sim/labels", e.writeLabels)
	return mux
}

// statusWriter notes the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (e *Engine) writeLabels(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	// A write fails when the client has left; there is nobody to tell.
	_ = WriteLabels(w, e.Labels())
}

// maxTenantName bounds what the engine keeps of a tenant's name, in bytes.
const maxTenantName = 256

// tenantOf returns who sent a request.
func tenantOf(r *http.Request) string {
	name := r.PathValue("account")
	if name == "" {
		if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
			name = strings.TrimSpace(token)
		}
	}
	for _, header := range [...]string{"X-Api-Key", "X-Goog-Api-Key"} {
		if name == "" {
			name = r.Header.Get(header)
		}
	}
	if name == "" {
		return "anonymous"
	}
	if len(name) > maxTenantName {
		name = name[:maxTenantName]
		for !utf8.ValidString(name) && len(name) > maxTenantName-utf8.UTFMax {
			name = name[:len(name)-1]
		}
	}
	return name
}

// responseID returns the id of a response and that of its label, and puts the
// latter into the response's header.
func (e *Engine) responseID(w http.ResponseWriter, r *http.Request, prefix string) (id, label string) {
	n := e.lastCall.Add(1)
	id = fmt.Sprintf("%s%016x%016x", prefix, mix(e.o.Cluster.Seed+n), mix(^e.o.Cluster.Seed-n))
	label = id
	if x := r.Header.Get("X-Request-Id"); sane(x) {
		label = x
	}
	w.Header().Set("X-Request-Id", label)
	return id, label
}

func sane(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c >= utf8.RuneSelf || !asciiWord[c] && !strings.ContainsRune("-_.:", rune(c)) {
			return false
		}
	}
	return true
}

// readJSON decodes a request's body into v.
func (e *Engine) readJSON(w http.ResponseWriter, r *http.Request, v any) *refusal {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, e.o.MaxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", tooLong.Limit), "BadRequestError"}
	case err != nil:
		f := badRequest("the body ended too early")
		return &f
	}
	if err := json.Unmarshal(body, v); err != nil {
		f := badRequest("%s", jsonProblem(err))
		return &f
	}
	return nil
}

// jsonProblem says what is wrong with a body, without quoting it.
func jsonProblem(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("the body is not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Sprintf("%s: is of the wrong type", kind.Field)
	}
	return err.Error() // from content and texts
}

// maxChoices is the most answers to one request.
const maxChoices = 16

// answers checks how many answers of which length a request asks for, and fills
// in the default.
func (e *Engine) answers(prompts, n, maxNew int) (int, int, *refusal) {
	if n == 0 {
		n = 1
	}
	if n < 0 || prompts*n > maxChoices {
		f := badRequest("n: %d answers to %d prompts are not between 1 and %d", n, prompts, maxChoices)
		return 0, 0, &f
	}
	if maxNew < 0 {
		f := badRequest("max_tokens: %d is negative", maxNew)
		return 0, 0, &f
	}
	if maxNew == 0 {
		maxNew = e.o.MaxNew
	}
	return n, min(maxNew, e.o.MaxNewLimit), nil
}
