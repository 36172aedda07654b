package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// errorBodies are what the proxy answers in its own name, by status code. They
// have the shape that clients of OpenAI-style APIs read, and name nothing of
// what lies behind.
type errorBodies map[int][]byte

func newErrorBodies() (errorBodies, error) {
	type envelope struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	bodies := errorBodies{}
	for status, e := range map[int]envelope{
		http.StatusBadRequest:       {"invalid_request_error", "the request body could not be read"},
		http.StatusMethodNotAllowed: {"invalid_request_error", "the method is not allowed"},
		http.StatusBadGateway:       {"upstream_error", "the upstream gave no answer"},
	} {
		body, err := json.Marshal(struct {
			Error envelope `json:"error"`
		}{e})
		if err != nil {
			return nil, fmt.Errorf("proxy: error body: %w", err)
		}
		bodies[status] = body
	}
	return bodies, nil
}

func (b errorBodies) write(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b[status]) // a client that is gone needs no error
}
