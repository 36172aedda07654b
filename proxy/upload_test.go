package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"time"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// handover is what an upload hands to the audit.
type handover struct {
	body []byte
	cut  dialect.Reason
}

func testUpload(t *testing.T, body io.Reader, declared int64, limit int, header ...string) (*upload, chan handover) {
	t.Helper()
	r, err := http.NewRequest("POST", "/", body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = declared
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got := make(chan handover, 10)
	return newUpload(r, limit, func(b []byte, cut dialect.Reason) { got <- handover{bytes.Clone(b), cut} }), got
}

// TestUploadAttempts reads bodies in pieces of all sizes, gives up at any
// place, begins again, and hands each body over once.
func TestUploadAttempts(t *testing.T) {
	rnd := seeded(t)
	for range 500 {
		body := randomBytes(rnd, rnd.IntN(20_000))
		limit := 1 + rnd.IntN(20_000)
		declared := int64(len(body))
		if rnd.IntN(2) == 0 {
			declared = -1
		}
		var src io.Reader = bytes.NewReader(body)
		if rnd.IntN(2) == 0 {
			src = iotest.DataErrReader(src) // the end comes with the last bytes
		}
		u, handed := testUpload(t, src, declared, limit)
		for a := u.begin(); a != nil; a = u.begin() {
			var got []byte
			stop := rnd.IntN(len(body) + 1)
			last := rnd.IntN(4) == 0
			if last {
				stop = len(body) + 1
				if rnd.IntN(2) == 0 {
					u.settle() // while the attempt may be behind
				}
			}
			var err error
			for err == nil && len(got) < stop {
				p := make([]byte, 1+rnd.IntN(5000))
				var n int
				n, err = a.Read(p)
				got = append(got, p[:n]...)
			}
			if !bytes.HasPrefix(body, got) || err != nil && (!errors.Is(err, io.EOF) || len(got) != len(body)) {
				t.Fatalf("limit %d: read %d of %d bytes, %v", limit, len(got), len(body), err)
			}
			if last {
				u.settle()
			}
		}
		u.end(audit.ReasonUpstreamBroken)
		h := <-handed
		want := handover{body, ""}
		switch {
		case u.read > int64(limit):
			want = handover{body[:limit], audit.ReasonTooLarge}
		case !u.whole:
			want = handover{body[:u.read], audit.ReasonUpstreamBroken}
		}
		if !bytes.Equal(h.body, want.body) || h.cut != want.cut {
			t.Fatalf("limit %d, read %d of %d: handed over %d bytes, cut %q; want %d, %q",
				limit, u.read, len(body), len(h.body), h.cut, len(want.body), want.cut)
		}
		if len(handed) > 0 {
			t.Fatal("handed over twice")
		}
		if u.kept != nil {
			t.Fatal("the copy is still held")
		}
		if cap(h.body) > 0 && u.begin() != nil {
			t.Fatal("the body can be read again after the end")
		}
	}
}

// TestUploadMemory believes a declared length only as far as bytes come.
func TestUploadMemory(t *testing.T) {
	u, _ := testUpload(t, iotest.OneByteReader(bytes.NewReader(make([]byte, 10_000))), 1<<40, 64<<20)
	a := u.begin()
	for range 10_000 {
		if _, err := a.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if c := cap(u.kept); c > max(4<<10, 4*len(u.kept)) {
			t.Fatalf("%d bytes set aside for %d", c, len(u.kept))
		}
	}
	u.end("")

	u, _ = testUpload(t, bytes.NewReader(make([]byte, 2000)), 2000, 64<<20)
	if _, err := io.Copy(io.Discard, u.begin()); err != nil {
		t.Fatal(err)
	}
	if c := cap(u.kept); c != 2000 {
		t.Errorf("%d bytes set aside for a body of 2000", c)
	}
}

// TestUploadReadFails has the client break off.
func TestUploadReadFails(t *testing.T) {
	broken := errors.New("of the test")
	u, handed := testUpload(t, io.MultiReader(bytes.NewReader([]byte("part")), iotest.ErrReader(broken)), -1, 100)
	if got, err := io.ReadAll(u.begin()); string(got) != "part" || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", got, err)
	}
	if h := <-handed; string(h.body) != "part" || h.cut != audit.ReasonClientGone {
		t.Errorf("handed over %q, cut %q", h.body, h.cut)
	}
	if ended, failed := u.ended(); ended || !failed {
		t.Errorf("ended %t, broken %t", ended, failed)
	}
	u.end(audit.ReasonClientGone)
}

// lateReader says that it is being read, and gives its bytes when let go.
type lateReader struct{ reading, release chan struct{} }

func (r lateReader) Read(p []byte) (int, error) {
	close(r.reading)
	<-r.release
	return copy(p, "late"), nil
}

// TestUploadAfterTheEnd is a transport that still reads when all is over.
func TestUploadAfterTheEnd(t *testing.T) {
	src := lateReader{make(chan struct{}), make(chan struct{})}
	u, handed := testUpload(t, src, -1, 100)
	a := u.begin()
	read := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 10))
		read <- err
	}()
	await(t, "read", src.reading)
	u.end(audit.ReasonUpstreamBroken)
	h := await(t, "handover", handed)
	close(src.release)
	if err := await(t, "end of the read", read); !errors.Is(err, errUploadOver) {
		t.Errorf("got %v, want errUploadOver", err)
	}
	if len(h.body) > 0 || len(handed) > 0 || u.kept != nil {
		t.Error("bytes came in after the end")
	}
	if _, err := a.Read(make([]byte, 10)); !errors.Is(err, errUploadOver) {
		t.Errorf("got %v, want errUploadOver", err)
	}
}

// TestUploadExpectation keeps a body unread that the upstream has refused
// unseen.
func TestUploadExpectation(t *testing.T) {
	for _, tt := range []struct {
		name                string
		answered, continued bool
		blocks              bool
	}{
		{"nothing came", false, false, false},
		{"100 came", true, true, false},
		{"refusal came", true, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, _ := testUpload(t, bytes.NewReader([]byte("prompt")), 6, 100, "Expect", "100-Continue")
			u.expect.answered.Store(tt.answered)
			u.expect.continued.Store(tt.continued)
			read := make(chan error, 1)
			a := u.begin()
			go func() {
				_, err := a.Read(make([]byte, 10))
				read <- err
			}()
			if !tt.blocks {
				if err := await(t, "read", read); err != nil {
					t.Error(err)
				}
				u.end("")
				return
			}
			select {
			case err := <-read:
				t.Fatalf("the body was read: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			u.end("")
			if err := await(t, "read", read); !errors.Is(err, errUploadOver) {
				t.Errorf("got %v, want errUploadOver", err)
			}
		})
	}
}
