package audit

import (
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/auditproxy/auditproxy/detectors"
)

// Log is a [Sink] that writes findings as NDJSON, one line for each change. It
// goes on after a failed write; Err says the first one.
type Log struct {
	mu  sync.Mutex
	enc *json.Encoder
	err error
}

// NewLog returns a log on w.
func NewLog(w io.Writer) *Log { return &Log{enc: json.NewEncoder(w)} }

// Finding implements [Sink].
func (l *Log) Finding(f detectors.Finding, _ bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.enc.Encode(&f); err != nil && l.err == nil {
		l.err = errors.Join(errors.New("findings log"), err)
	}
}

// Exchange implements [Sink].
func (l *Log) Exchange(Summary) {}

// Err returns the first error in writing, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
