package sim

// Gemini's generateContent and streamGenerateContent, under /v1beta/models/.
// Model and action share the last segment of the path.
//
// A stream is server-sent events if the query says alt=sse, with both line ends
// after each, and one JSON array otherwise, whose elements leave one by one. An
// element is a whole response that holds a token of one candidate. The last has
// the reasons of all candidates and the usage.
//
// A request that is refused gets a status of its own, also when it asked for a
// stream: in an array of one if the stream would have been an array. A stream
// that has begun ends with an error in place of a response.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// geminiRequest has the fields in the spellings that the API takes for them.
type geminiRequest struct {
	Contents         []geminiContent `json:"contents"`
	System           *geminiContent  `json:"systemInstruction"`
	SystemSnake      *geminiContent  `json:"system_instruction"`
	Tools            json.RawMessage `json:"tools"`
	CachedContent    string          `json:"cachedContent"`
	Generation       geminiConfig    `json:"generationConfig"`
	GenerationSnake  geminiConfig    `json:"generation_config"`
	CachedContentOld string          `json:"cached_content"`
}

type geminiConfig struct {
	MaxOutputTokens      int `json:"maxOutputTokens"`
	MaxOutputTokensSnake int `json:"max_output_tokens"`
	CandidateCount       int `json:"candidateCount"`
	CandidateCountSnake  int `json:"candidate_count"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

// geminiPart is a part of a request: one of its fields is set.
type geminiPart struct {
	Text         *string `json:"text"`
	FunctionCall *struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	ExecutableCode *struct {
		Code string `json:"code"`
	} `json:"executableCode"`
	CodeExecutionResult *struct {
		Output string `json:"output"`
	} `json:"codeExecutionResult"`
}

// appendTo appends the part to the messages of a chat. last is the message that
// collects the texts of the turn.
func (p *geminiPart) appendTo(all []message, last *message) ([]message, error) {
	switch {
	case p.Text != nil:
		last.Content = append(last.Content, *p.Text)
	case p.FunctionCall != nil:
		var c toolCall
		c.Function.Name, c.Function.Arguments = p.FunctionCall.Name, string(p.FunctionCall.Args)
		last.ToolCalls = append(last.ToolCalls, c)
	case p.FunctionResponse != nil:
		all = append(all, message{Role: "tool", Content: content{p.FunctionResponse.Name + " " + string(p.FunctionResponse.Response)}})
	case p.ExecutableCode != nil:
		last.Content = append(last.Content, p.ExecutableCode.Code)
	case p.CodeExecutionResult != nil:
		all = append(all, message{Role: "tool", Content: content{p.CodeExecutionResult.Output}})
	default:
		return nil, errors.New("the model reads text only")
	}
	return all, nil
}

// chat returns the request's turns in the shape that the template takes.
func (q *geminiRequest) chat() ([]message, error) {
	var all []message
	if q.System == nil {
		q.System = q.SystemSnake
	}
	if q.System != nil {
		system := message{Role: "system"}
		for i, p := range q.System.Parts {
			if p.Text == nil {
				return nil, fmt.Errorf("system_instruction: part %d: is no text", i)
			}
			system.Content = append(system.Content, *p.Text)
		}
		all = append(all, system)
	}
	if len(q.Contents) == 0 {
		return nil, errors.New("contents: is empty")
	}
	for i := range q.Contents {
		var turn message
		switch q.Contents[i].Role {
		case "", "user":
			turn.Role = "user"
		case "model":
			turn.Role = "assistant"
		case "function":
			turn.Role = "tool"
		default:
			return nil, fmt.Errorf("contents: the role of content %d is none of user, model, function", i)
		}
		for j := range q.Contents[i].Parts {
			var err error
			if all, err = q.Contents[i].Parts[j].appendTo(all, &turn); err != nil {
				return nil, fmt.Errorf("contents: part %d of content %d: %w", j, i, err)
			}
		}
		if len(turn.Content) > 0 || len(turn.ToolCalls) > 0 {
			all = append(all, turn)
		}
	}
	return all, nil
}

func (e *Engine) generateContent(w http.ResponseWriter, r *http.Request) {
	id, label := e.responseID(w, r, "")
	model, action, stream := r.PathValue("call"), "", false
	sse := r.URL.Query().Get("alt") == "sse"
	if i := strings.LastIndexByte(model, ':'); i >= 0 {
		model, action = model[:i], model[i+1:]
	}
	refuse := refuseGemini
	switch action {
	case "generateContent":
	case "streamGenerateContent":
		stream = true
		if !sse {
			refuse = refuseGeminiArray
		}
	default:
		refuse(w, refusal{http.StatusNotFound, "the model has no such method", "NotFoundError"})
		return
	}
	var q geminiRequest
	if f := e.readJSON(w, r, &q); f != nil {
		refuse(w, *f)
		return
	}
	if q.CachedContent != "" || q.CachedContentOld != "" {
		refuse(w, badRequest("cached_content: is not supported"))
		return
	}
	turns, err := q.chat()
	if err != nil {
		refuse(w, badRequest("%v", err))
		return
	}
	parts, err := chat(turns, q.Tools)
	if err != nil {
		refuse(w, badRequest("%v", err))
		return
	}
	g, snake := q.Generation, q.GenerationSnake
	candidates := max(g.CandidateCount, g.CandidateCountSnake, snake.CandidateCount, snake.CandidateCountSnake)
	tokens := max(g.MaxOutputTokens, g.MaxOutputTokensSnake, snake.MaxOutputTokens, snake.MaxOutputTokensSnake)
	n, maxNew, f := e.answers(1, candidates, tokens)
	if f != nil {
		refuse(w, *f)
		return
	}
	c := call{e: e, id: label, tenant: tenantOf(r), prompts: [][]part{parts}, n: n, maxNew: maxNew}
	a := geminiAnswer{model: e.modelName(model), id: id, refusal: refuse, reasons: make([]string, n)}
	if stream {
		kind := "application/json; charset=UTF-8"
		if sse {
			kind = "text/event-stream"
		}
		c.reply = &geminiStream{geminiAnswer: a, jsonStream: jsonStream{newEvents(w), kind}, sse: sse}
	} else {
		c.reply = &geminiWhole{geminiAnswer: a, w: w, texts: make([]strings.Builder, n)}
	}
	c.serve(r)
}

type geminiError struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	} `json:"error"`
}

func (f refusal) gemini() (v geminiError) {
	v.Error.Code, v.Error.Message = f.status, f.message
	switch f.status {
	case http.StatusNotFound:
		v.Error.Status = "NOT_FOUND"
	case http.StatusServiceUnavailable:
		v.Error.Status = "UNAVAILABLE"
	default:
		v.Error.Status = "INVALID_ARGUMENT"
		if f.status >= 500 {
			v.Error.Status = "INTERNAL"
		}
	}
	return v
}

func refuseGemini(w http.ResponseWriter, f refusal) { writeJSON(w, f.status, f.gemini()) }

func refuseGeminiArray(w http.ResponseWriter, f refusal) {
	writeJSON(w, f.status, []geminiError{f.gemini()})
}

type geminiResponse struct {
	Candidates   []geminiCandidate `json:"candidates"`
	Usage        *geminiUsage      `json:"usageMetadata,omitempty"`
	ModelVersion string            `json:"modelVersion"`
	ResponseID   string            `json:"responseId"`
}

type geminiCandidate struct {
	Content      geminiSaid `json:"content"`
	FinishReason string     `json:"finishReason,omitempty"`
	Index        int        `json:"index"`
}

type geminiSaid struct {
	Parts []geminiText `json:"parts"`
	Role  string       `json:"role"`
}

type geminiText struct {
	Text string `json:"text"`
}

type geminiUsage struct {
	Prompt     int `json:"promptTokenCount"`
	Candidates int `json:"candidatesTokenCount"`
	Total      int `json:"totalTokenCount"`
}

// geminiAnswer is what whole answers and streams have in common.
type geminiAnswer struct {
	model, id string
	refusal   func(http.ResponseWriter, refusal)
	reasons   []string // by candidate
}

func (a *geminiAnswer) finish(i int, reason string) {
	switch reason {
	case "stop":
		reason = "STOP"
	case "length":
		reason = "MAX_TOKENS"
	}
	a.reasons[i] = reason
}

func (a *geminiAnswer) candidate(i int, text string) geminiCandidate {
	return geminiCandidate{
		Content:      geminiSaid{Parts: []geminiText{{text}}, Role: "model"},
		FinishReason: a.reasons[i],
		Index:        i,
	}
}

func (a *geminiAnswer) response(u *usage, candidates ...geminiCandidate) geminiResponse {
	v := geminiResponse{Candidates: candidates, ModelVersion: a.model, ResponseID: a.id}
	if u != nil {
		v.Usage = &geminiUsage{u.Prompt, u.Completion, u.Total}
	}
	return v
}

// geminiWhole answers with one JSON document.
type geminiWhole struct {
	geminiAnswer
	w     http.ResponseWriter
	texts []strings.Builder
}

func (a *geminiWhole) delta(i int, text string) { a.texts[i].WriteString(text) }
func (a *geminiWhole) flush() error             { return nil }
func (a *geminiWhole) refuse(f refusal)         { a.refusal(a.w, f) }

func (a *geminiWhole) end(u usage) {
	candidates := make([]geminiCandidate, len(a.texts))
	for i := range a.texts {
		candidates[i] = a.candidate(i, a.texts[i].String())
	}
	writeJSON(a.w, http.StatusOK, a.response(&u, candidates...))
}

// geminiStream answers with events or with the elements of an array.
type geminiStream struct {
	geminiAnswer
	jsonStream
	sse   bool
	added bool // an element of the array
}

// element adds one response.
func (a *geminiStream) element(v any) {
	switch {
	case a.sse:
		a.buf.WriteString("data: ")
		a.line(v)
		a.buf.Truncate(a.buf.Len() - 1)
		a.buf.WriteString("\r\n\r\n")
		return
	case a.added:
		a.buf.WriteString(",\r\n")
	default:
		a.added = true
		a.buf.WriteByte('[')
	}
	a.line(v)
}

// close ends the array.
func (a *geminiStream) close() {
	if !a.sse {
		a.buf.WriteString("]\n")
	}
}

func (a *geminiStream) delta(i int, text string) {
	if text != "" {
		a.element(a.response(nil, a.candidate(i, text)))
	}
}

func (a *geminiStream) end(u usage) {
	candidates := make([]geminiCandidate, len(a.reasons))
	for i := range candidates {
		candidates[i] = a.candidate(i, "")
	}
	a.element(a.response(&u, candidates...))
	a.close()
}

func (a *geminiStream) refuse(f refusal) {
	if !a.begun {
		a.refusal(a.w, f)
		return
	}
	a.element(f.gemini())
	a.close()
	// flush fails when the client has left; there is nobody to tell.
	_ = a.flush()
}
