package gpukv

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// incident wraps the decode pool with the requests of two donors and then sends
// the prompt of victim, which the prefill node can't hold and the decode node
// can. Sizes are those of the incident, divided by 4,096 or so.
func incident(t *testing.T, fixes []Fix, victim uint64) *rig {
	t.Helper()
	r := newRig(t, incidentConfig(fixes), small)
	r.submit(Request{ID: 1, Tenant: 1, Prompt: words(1, 150), MaxNew: 10})
	r.submit(Request{ID: 2, Tenant: 2, Prompt: words(2, 150), MaxNew: 10})
	r.drain()
	r.run(Request{ID: 100, Tenant: 9, Prompt: words(100, 150), MaxNew: 10})
	r.run(Request{ID: victim, Tenant: 3, Prompt: words(victim, 200), MaxNew: 40})
	return r
}

func incidentConfig(fixes []Fix) Config {
	return Config{
		PageSize: 8, Window: 256, PrefillTokens: 168, DecodeTokens: 512, Ranks: 1,
		Faults: []Fault{StalePages}, Fixes: fixes,
	}
}

// queues names where a request stands on each node.
func queues(r *rig, id uint64) (prefill, decode string) {
	x := r.live[id]
	if x == nil {
		return "-", "-"
	}
	has := func(q []*exchange) bool { return slices.Contains(q, x) }
	switch p := &r.prefill; {
	case has(p.bootstrap):
		prefill = "bootstrap"
	case has(p.waiting):
		prefill = "waiting"
	case p.chunked == x:
		prefill = "chunked"
	case has(p.inflight):
		prefill = "inflight"
	case x.p.gone:
		prefill = "-"
	}
	switch d := &r.decode; {
	case has(d.prealloc):
		decode = "prealloc"
	case has(d.transfer):
		decode = "transfer"
	case has(d.waiting):
		decode = "waiting"
	case has(d.batch):
		decode = "running"
	case x.d.gone:
		decode = "-"
	}
	return prefill, decode
}

// TestIncidentTrace follows the oversized prompt through both nodes, state by
// state.
func TestIncidentTrace(t *testing.T) {
	type state struct {
		Prefill, Decode string // queues
		Aborted         bool   // on the prefill node
		Finished        bool   // on the prefill node
		Input           int    // tokens that the prefill node computes
		Sent, Reserved  int    // pages
		Sender          kvPoll
		Generated       int
		Attended        int // positions
	}
	r := newRig(t, incidentConfig(nil), small)
	r.submit(Request{ID: 1, Tenant: 1, Prompt: words(1, 200), MaxNew: 3})
	look := func() state {
		var s state
		s.Prefill, s.Decode = queues(r, 1)
		s.Generated = len(r.answers[1])
		if x := r.live[1]; x != nil {
			s.Aborted, s.Finished, s.Input = x.p.aborted(), x.p.finished(), len(x.p.input)
			s.Sent, s.Reserved, s.Sender = x.room.sent, len(x.room.reserved), x.room.sender.poll()
			s.Attended = x.context.n
		}
		return s
	}
	// The pool of the prefill node holds 168 tokens, the prompt has 200 and takes
	// 25 pages of 8.
	want := []state{
		// The scheduler has marked it and queued it all the same; the capacity
		// check of the bootstrap queue has seen one token.
		{"bootstrap", "prealloc", true, false, 1, 0, 0, pollBootstrapping, 0, 0},
		// Decode commits to 200 tokens and sends the indices of 25 pages.
		{"waiting", "transfer", true, false, 1, 0, 25, pollWaitingForInput, 0, 0},
		// Prefill computes one token and sends one page, as the last.
		{"inflight", "transfer", true, false, 1, 1, 25, pollTransferring, 0, 1},
		// It lands; both sides call that a success.
		{"inflight", "transfer", true, false, 1, 1, 25, pollSuccess, 0, 1},
		// Prefill ends it as a success of no tokens; decode compares the room.
		{"-", "waiting", true, true, 1, 1, 25, pollSuccess, 0, 1},
		// The first token is out, and decode runs over 200 positions.
		{"-", "running", true, true, 1, 1, 25, pollSuccess, 1, 1},
		{"-", "running", true, true, 1, 1, 25, pollSuccess, 2, 201},
		{"-", "-", false, false, 0, 0, 0, pollFailed, 3, 0},
	}
	var got []state
	for range want {
		got = append(got, look())
		r.step()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	r.drain()
	if diff := cmp.Diff(Finish{Reason: "length", Status: 200, PromptTokens: 200, CompletionTokens: 3}, r.ends[1].Finish); diff != "" {
		t.Errorf("finish (-want +got):\n%s", diff)
	}
	s := r.Stats()
	if s.Prefill.Finished != 1 || s.Prefill.PromptTokens != 1 || s.Prefill.Refused != 0 || s.Prefill.GeneratedTokens != 1 {
		t.Errorf("prefill gauges: %+v", s.Prefill)
	}
	if s.Decode.Finished != 1 || s.Decode.PromptTokens != 200 || s.Decode.Refused != 0 {
		t.Errorf("decode gauges: %+v", s.Decode)
	}
}

func TestIncidentLeaks(t *testing.T) {
	r := incident(t, nil, 3)
	reads := r.Reads(3)
	donors := map[uint64]int{}
	for _, rd := range reads {
		donors[rd.Donor]++
	}
	t.Logf("foreign reads by donor: %v", donors)
	if r.foreign() != len(reads) || len(reads) < 10 {
		t.Errorf("%d foreign reads", len(reads))
	}
	if f := r.ends[3].Finish; f.Status != 200 || f.PromptTokens != 200 || f.CompletionTokens != 40 {
		t.Errorf("finish: %+v", f)
	}
}

// TestFixes sends the incident against each fix, and checks how it ends.
func TestFixes(t *testing.T) {
	const over = "Input length (200 tokens) exceeds the maximum allowed length (162 tokens). "
	for _, tt := range []struct {
		name    string
		fixes   []Fix
		old     bool
		refused bool
		leaks   bool
	}{
		{"none", nil, false, false, true},
		{"retire_after_forward", []Fix{RetireAfterForward}, false, true, false},
		{"door_check", []Fix{DoorCheck}, false, true, false},
		{"length_check", []Fix{LengthCheck}, false, true, false},
		{"length_check_fail_open", []Fix{LengthCheckFailOpen}, false, true, false},
		{"length_check_fail_open, old prefill", []Fix{LengthCheckFailOpen}, true, false, true},
		{"kv_checksum", []Fix{KVChecksum}, false, true, false},
		{"deferred_release", []Fix{DeferredRelease}, false, false, true},
		{"zero_on_alloc", []Fix{ZeroOnAlloc}, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := incidentConfig(tt.fixes)
			cfg.OldPrefill = tt.old
			r := newRig(t, cfg, small)
			for id := uint64(1); id <= 5; id++ {
				f := r.run(Request{ID: id, Tenant: uint32(id), Prompt: words(id, 150), MaxNew: 10})
				if f.Status != 200 {
					t.Fatalf("an ordinary request: %+v", f)
				}
			}
			f := r.run(Request{ID: 9, Tenant: 9, Prompt: words(9, 200), MaxNew: 40})
			refused := r.ends[9].Kind == Refused
			if refused != tt.refused || refused && (f.Reason != "abort" || f.Status != 400 ||
				f.ErrType != "BadRequestError" || !strings.HasPrefix(f.Message, over) || len(r.answers[9]) > 0) {
				t.Errorf("end: %+v after %d tokens", r.ends[9], len(r.answers[9]))
			}
			if got := r.foreign() > 0; got != tt.leaks {
				t.Errorf("leaks: got %v, want %v", got, tt.leaks)
			}
			want := uint64(0)
			if r.fixed[ZeroOnAlloc] {
				// Five requests of 150+9 slots in 20 pages, and one of 200+39 in 30;
				// on the prefill node 19 pages each, and one.
				want = (5*20 + 30) * 8 * 44_928
			}
			if got := r.Stats().Decode.BytesZeroed; got != want {
				t.Errorf("decode bytes zeroed: got %d, want %d", got, want)
			}
			if r.fixed[ZeroOnAlloc] {
				want = (5*19 + 1) * 8 * 44_928
			}
			if got := r.Stats().Prefill.BytesZeroed; got != want {
				t.Errorf("prefill bytes zeroed: got %d, want %d", got, want)
			}
		})
	}
}

// TestStrictCheckOfOldPrefill: a strict check takes a mixed fleet out of
// service, which is why it is not the default anywhere.
func TestStrictCheckOfOldPrefill(t *testing.T) {
	r := newRig(t, Config{OldPrefill: true, Fixes: []Fix{LengthCheck}}, small)
	f := r.run(Request{ID: 1, Prompt: words(1, 10)})
	want := Finish{Reason: "abort", Status: 500, ErrType: "InternalServerError",
		Message: "Prefill committed 0 tokens of request 1, decode expects 10."}
	if diff := cmp.Diff(want, f); diff != "" || r.ends[1].Kind != Refused {
		t.Errorf("finish (-want +got):\n%s", diff)
	}
}

// TestRefusals checks the limits of a correct engine, token by token.
func TestRefusals(t *testing.T) {
	cfg := Config{PageSize: 8, Window: 256, PrefillTokens: 168, DecodeTokens: 512}
	const hint = " Use a shorter input or enable --allow-auto-truncate."
	for _, tt := range []struct {
		n      int
		fault  bool
		kind   EventKind
		status int
		text   string
	}{
		{161, false, Finished, 200, ""},
		{162, false, Refused, 400, "Input length (162 tokens) exceeds the maximum allowed length (162 tokens)." + hint},
		{162, true, Finished, 200, ""},
		{249, true, Finished, 200, ""},
		// Too long for the decode node too: that one does promote to_finish.
		{250, true, Refused, 400, "Input length (250 tokens) exceeds the maximum allowed length (250 tokens)." + hint},
		{255, false, Refused, 400, "Input length (255 tokens) exceeds the maximum allowed length (162 tokens)." + hint},
		{256, false, Refused, 400, "The input (256 tokens) is longer than the model's context length (256 tokens)."},
		{256, true, Refused, 400, "The input (256 tokens) is longer than the model's context length (256 tokens)."},
	} {
		if tt.fault {
			cfg.Faults = []Fault{StalePages}
		} else {
			cfg.Faults = nil
		}
		r := newRig(t, cfg, small)
		f := r.run(Request{ID: 1, Prompt: words(1, tt.n), MaxNew: 2})
		if r.ends[1].Kind != tt.kind || f.Status != tt.status || f.Message != tt.text {
			t.Errorf("%d tokens, fault %v: got %+v", tt.n, tt.fault, r.ends[1])
		}
	}
}

// TestSmallerDecodePool sends what only the decode node can't hold: it reserves
// one page for its placeholder, and the transfer refuses to write more.
func TestSmallerDecodePool(t *testing.T) {
	for _, faults := range [][]Fault{nil, {StalePages}} {
		cfg := Config{PageSize: 8, Window: 256, PrefillTokens: 512, DecodeTokens: 168, Faults: faults}
		r := newRig(t, cfg, small)
		f := r.run(Request{ID: 1, Prompt: words(1, 200), MaxNew: 2})
		if r.ends[1].Kind != Refused || f.Status != 400 || !strings.Contains(f.Message, "(162 tokens)") {
			t.Errorf("faults %v: got %+v", faults, r.ends[1])
		}
	}
}

// TestSentPageCarriesStaleSlots: the one page that is sent brings what the
// prefill pool held behind the placeholder, even into a decode pool that is
// fresh.
func TestSentPageCarriesStaleSlots(t *testing.T) {
	cfg := incidentConfig(nil)
	cfg.DecodeTokens = 8000
	r := newRig(t, cfg, at(3))
	// 19 pages of 21, then the other two: the next page is the first again.
	r.run(Request{ID: 1, Tenant: 1, Prompt: words(1, 150), MaxNew: 1})
	r.run(Request{ID: 2, Tenant: 2, Prompt: words(2, 16), MaxNew: 1})
	r.run(Request{ID: 9, Tenant: 9, Prompt: words(9, 200), MaxNew: 4})
	if s := r.Stats(); s.Decode.Wraps != 0 || s.Prefill.Wraps != 1 {
		t.Fatalf("wraps: prefill %d, decode %d", s.Prefill.Wraps, s.Decode.Wraps)
	}
	want := []Read{
		{Step: 1, Donor: 1, Tenant: 1, Position: 3},
		{Step: 2, Donor: 1, Tenant: 1, Position: 3},
		{Step: 3, Donor: 1, Tenant: 1, Position: 3},
	}
	if diff := cmp.Diff(want, r.Reads(9)); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	r.foreign()
}

// TestPartialLastPage: what stands behind the length of a request that fits is
// stale, and out of reach.
func TestPartialLastPage(t *testing.T) {
	steps := 0
	own := modelFunc(func(c *Context) (Token, int) {
		steps++
		id := c.At(0) >> 20
		n := 0
		for n < c.Len() {
			b := c.Block(n)
			for i, tok := range b {
				if tok>>20 != id || tok != c.At(n+i) {
					t.Errorf("request %d sees token %x at position %d of %d", id, tok, n+i, c.Len())
				}
			}
			n += len(b)
		}
		if n != c.Len() {
			t.Errorf("blocks hold %d tokens, the context %d", n, c.Len())
		}
		return id<<20 | 1, -1
	})
	r := newRig(t, incidentConfig(nil), own)
	r.run(Request{ID: 1, Tenant: 1, Prompt: words(1, 150), MaxNew: 20})
	for id := uint64(2); id < 30; id++ {
		r.run(Request{ID: id, Tenant: uint32(id), Prompt: words(id, 30+int(id)), MaxNew: 20})
	}
	if s := r.Stats(); s.Prefill.Wraps == 0 || s.Decode.Wraps == 0 || steps != 29*20 {
		t.Errorf("%d tokens, wraps: prefill %d, decode %d", steps, s.Prefill.Wraps, s.Decode.Wraps)
	}
}

// TestFullSize is the incident at its own size: a prompt that the prefill node
// can't hold, after ordinary traffic has wrapped the decode pool.
func TestFullSize(t *testing.T) {
	for _, fixes := range [][]Fix{nil, {DoorCheck}} {
		cfg := Config{Faults: []Fault{StalePages}, Fixes: fixes, Seed: 3}
		r := newRig(t, cfg, Induction{Background: noise(2000)})
		for id := uint64(1); r.Stats().Decode.Wraps == 0; id++ {
			r.submit(Request{ID: id, Tenant: uint32(id), Prompt: prose(id, 600_000), MaxNew: 20})
			for r.Stats().Decode.Queued+r.Stats().Decode.Running > 0 {
				r.step()
			}
		}
		r.run(Request{ID: 1 << 20, Tenant: 1 << 20, Prompt: prose(1<<20, 684_000), MaxNew: 300})
		n := r.foreign()
		t.Logf("%v: %d foreign reads in 300 tokens, %+v", fixes, n, r.ends[1<<20])
		if leaks := n > 100; leaks != (fixes == nil) {
			t.Errorf("fixes %v: %d foreign reads", fixes, n)
		}
	}
}

// TestCapacityCheck: the check at the bootstrap queue does hold back what it can
// see.
func TestCapacityCheck(t *testing.T) {
	r := newRig(t, incidentConfig(nil), small)
	x := &exchange{id: 1, room: r.link.room(), p: newReq(&Request{Prompt: words(1, 169)})}
	r.prefill.admit(x)
	if len(r.prefill.bootstrap) != 0 || !x.p.finished() || !x.p.gone || r.Stats().Refused != 1 {
		t.Errorf("169 tokens for a pool of 168: %+v, %+v", x.p, r.Stats())
	}
}

// TestRoomIsCompared: the one thing that decode does check.
func TestRoomIsCompared(t *testing.T) {
	r := newRig(t, incidentConfig(nil), small)
	r.submit(Request{ID: 1, Prompt: words(1, 9)})
	for r.live[1].room.meta.room == 0 {
		r.step()
	}
	r.live[1].room.meta.room = 77
	r.drain()
	if f := r.ends[1].Finish; r.ends[1].Kind != Refused || f.Status != 500 || f.Message != "Metadata of room 77 arrived in room 1." {
		t.Errorf("got %+v", r.ends[1])
	}
}
