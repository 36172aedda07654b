package gpukv

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewRejects(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{PageSize: -1}, "page size: -1 is negative"},
		{Config{Window: -1}, "window: -1 is negative"},
		{Config{Ranks: 65}, "ranks: 65 is more than 64"},
		{Config{Window: math.MaxInt32 + 1}, "window and pools: more than 2147483647 tokens"},
		{Config{PrefillTokens: 63}, "a pool of 63 tokens in pages of 64, with a window of 1048576: no room for a prompt"},
		{Config{DecodeTokens: 7, PageSize: 1}, "a pool of 7 tokens in pages of 1, with a window of 1048576: no room for a prompt"},
		{Config{Window: 7}, "a pool of 681280 tokens in pages of 64, with a window of 7: no room for a prompt"},
		{Config{Faults: []Fault{"rust"}}, `fault "rust" is unknown: want one of stale_pages`},
		{Config{Fixes: []Fix{"oil"}}, `fix "oil" is unknown: want one of retire_after_forward, door_check, length_check, length_check_fail_open, kv_checksum, deferred_release, zero_on_alloc`},
	} {
		if _, err := New(tt.cfg, small); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: got %v, want %s", tt.cfg, err, tt.want)
		}
	}
	if _, err := New(Config{}, nil); err == nil {
		t.Error("no model: no error")
	}
	for _, cfg := range []Config{{Window: 8}, {DecodeTokens: 8, PageSize: 1}, {PrefillTokens: 127}} {
		r := newRig(t, cfg, small)
		if f := r.run(Request{ID: 1, Prompt: words(1, 1), MaxNew: 9}); f.Status != 200 || f.CompletionTokens == 0 {
			t.Errorf("%+v: the smallest request: %+v", cfg, f)
		}
	}
}

func TestParse(t *testing.T) {
	for _, f := range Faults() {
		if got, err := ParseFault(string(f)); got != f || err != nil {
			t.Errorf("fault %s: got %s, %v", f, got, err)
		}
	}
	for _, f := range Fixes() {
		if got, err := ParseFix(string(f)); got != f || err != nil {
			t.Errorf("fix %s: got %s, %v", f, got, err)
		}
	}
	if got, err := ParseFix("length_check_strict"); got != LengthCheck || err != nil {
		t.Errorf("length_check_strict: got %s, %v", got, err)
	}
	if _, err := ParseFault("rust"); err == nil || err.Error() != `fault "rust" is unknown: want one of stale_pages` {
		t.Errorf("got %v", err)
	}
	if _, err := ParseFix(""); err == nil {
		t.Error("no name: no error")
	}
}

// TestLimits checks the gauges of the incident's hardware.
func TestLimits(t *testing.T) {
	got := newRig(t, Config{}, small).Stats()
	want := Stats{
		PageSize: 64,
		Window:   1_048_576,
		Prefill:  RoleStats{MaxTotalTokens: 681_280, MaxReqInputLen: 681_274, Pages: 10_645},
		Decode:   RoleStats{MaxTotalTokens: 2_097_152, MaxReqInputLen: 1_048_570, Pages: 32_768},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
	if got := newRig(t, Config{PrefillTokens: 1000}, small).Stats().Prefill.MaxTotalTokens; got != 960 {
		t.Errorf("a pool of 1,000 tokens in pages of 64 holds %d", got)
	}
}

func TestChunkTokensAreWholePages(t *testing.T) {
	for _, tt := range []struct{ page, chunk, want int }{{64, 0, 8192}, {64, 1, 64}, {64, 64, 64}, {64, 65, 128}, {48, 100, 144}} {
		cfg, err := Config{PageSize: tt.page, ChunkTokens: tt.chunk}.complete()
		if err != nil || cfg.ChunkTokens != tt.want {
			t.Errorf("%d tokens in pages of %d: got %d, %v, want %d", tt.chunk, tt.page, cfg.ChunkTokens, err, tt.want)
		}
	}
}
