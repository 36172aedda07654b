package gpukv

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestUpdateStatus(t *testing.T) {
	for _, tt := range []struct{ now, to, want kvPoll }{
		{pollBootstrapping, pollWaitingForInput, pollWaitingForInput},
		{pollTransferring, pollWaitingForInput, pollTransferring},
		{pollSuccess, pollTransferring, pollSuccess},
		{pollSuccess, pollFailed, pollFailed},
		{pollFailed, pollSuccess, pollFailed},
		{pollFailed, pollFailed, pollFailed},
	} {
		if got := updateStatus(tt.now, tt.to); got != tt.want {
			t.Errorf("%d to %d: got %d, want %d", tt.now, tt.to, got, tt.want)
		}
	}
}

// TestRanksReduceByMin: a side has advanced when its last rank has, never goes
// back, and has failed with its first.
func TestRanksReduceByMin(t *testing.T) {
	lagged := 0
	runs(t, 200, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := newSide(make([]kvPoll, 4))
		for _, to := range []kvPoll{pollWaitingForInput, pollTransferring, pollSuccess} {
			s.update(to)
			for {
				got := s.poll()
				if got != slices.Min(s.ranks) {
					t.Fatalf("poll %d of ranks %v", got, s.ranks)
				}
				settled := s.advance(rnd)
				if s.poll() < got {
					t.Fatalf("from %d back to %d", got, s.poll())
				}
				if settled != (s.poll() == to) {
					t.Fatalf("settled %v at %v on the way to %d", settled, s.ranks, to)
				}
				if settled {
					break
				}
				lagged++
			}
		}
		s.update(pollFailed)
		if s.poll() != pollFailed {
			t.Errorf("one rank has failed: %v", s.ranks)
		}
		s.update(pollSuccess)
		for !s.advance(rnd) {
		}
		if slices.Max(s.ranks) != pollFailed {
			t.Errorf("ranks %v after a failure", s.ranks)
		}
	})
	if lagged == 0 {
		t.Error("no rank ever lags")
	}
}

func newLink(pages int, keep bool) *link {
	l := newLedger()
	return &link{
		from: newPool(4, pages, false, l), to: newPool(4, pages, false, l),
		ranks: 1, keep: keep, rnd: rand.New(rand.NewPCG(1, 1)),
	}
}

func TestTransferRefusesMorePagesThanReserved(t *testing.T) {
	for _, tt := range []struct {
		pages int
		want  kvPoll
	}{{1, pollSuccess}, {2, pollSuccess}, {3, pollFailed}} {
		l := newLink(8, false)
		r := l.room()
		l.reserve(r, []uint32{6, 7})
		l.send(r, []uint32{0, 1, 2}[:tt.pages], true, metadata{room: r.id})
		l.step()
		l.step()
		if s, d := r.sender.poll(), r.receiver.poll(); s != tt.want || d != tt.want {
			t.Errorf("%d pages into 2: sender %d, receiver %d, want %d", tt.pages, s, d, tt.want)
		}
	}
}

func TestWriteLandsAStepLater(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for _, cancel := range []bool{false, true} {
			l := newLink(8, keep)
			l.from.write([]uint32{3}, 0, []Token{7}, nobody)
			r := l.room()
			l.reserve(r, []uint32{6})
			l.send(r, []uint32{3}, true, metadata{room: r.id})
			l.step()
			if l.to.tokens[6*4] != 0 || len(r.writes) != 1 {
				t.Fatal("landed in the step that sent it")
			}
			if cancel {
				l.fail(r)
			}
			l.step()
			landed := l.to.tokens[6*4] == 7
			if want := keep || !cancel; landed != want || len(r.writes) > 0 {
				t.Errorf("keep %v, cancelled %v: landed %v", keep, cancel, landed)
			}
			if failed := r.receiver.poll() == pollFailed; failed != cancel {
				t.Errorf("keep %v, cancelled %v: failed %v", keep, cancel, failed)
			}
			if len(l.rooms) != 0 {
				t.Error("the link keeps a room that has settled")
			}
		}
	}
}
