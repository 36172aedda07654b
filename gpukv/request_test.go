package gpukv

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAbortIsNotAnEnd: the heart of the incident, in three calls.
func TestAbortIsNotAnEnd(t *testing.T) {
	r := newReq(&Request{Prompt: words(1, 9), MaxNew: 4})
	if r.aborted() || r.finished() {
		t.Error("a new request is aborted or finished")
	}
	r.setFinishWithAbort("too long")
	if !r.aborted() || r.finished() {
		t.Errorf("marked: aborted %v, finished %v", r.aborted(), r.finished())
	}
	if diff := cmp.Diff([]Token{placeholder}, r.input); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	r.updateFinishState()
	if !r.aborted() || !r.finished() || r.toFinish != nil || r.finishedReason.message != "too long" || r.finishedReason.status != 400 {
		t.Errorf("promoted: %+v", r.finishedReason)
	}
	r.output = make([]Token, 4)
	r.updateFinishState()
	if r.finishedReason.reason != reasonAbort {
		t.Errorf("ended twice: %+v", r.finishedReason)
	}
}

func TestUpdateFinishState(t *testing.T) {
	for _, tt := range []struct {
		name   string
		output []Token
		stop   Token
		abort  bool
		want   *finish
	}{
		{"none", nil, 0, false, nil},
		{"going on", []Token{1, 2}, 9, false, nil},
		{"stop", []Token{1, 9}, 9, false, finishStop},
		{"stop earlier", []Token{9, 1}, 9, false, nil},
		{"length", []Token{1, 2, 3}, 9, false, finishLength},
		{"both", []Token{1, 2, 9}, 9, false, finishStop},
		{"zero is no stop", []Token{1, 0}, 0, false, nil},
		{"abort first", []Token{1, 2, 9}, 9, true, badRequest("no")},
	} {
		r := req{input: words(1, 2), output: tt.output, stop: tt.stop, maxNew: 3}
		if tt.abort {
			r.setFinishWithAbort("no")
		}
		r.updateFinishState()
		if diff := cmp.Diff(tt.want, r.finishedReason, cmp.AllowUnexported(finish{})); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", tt.name, diff)
		}
	}
}
