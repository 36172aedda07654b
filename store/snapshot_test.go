package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/fingerprint"
)

var testBinding = [16]byte{1, 2, 3}

func saved(t testing.TB, x *Index) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := x.Save(&b, testBinding); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func restoredFrom(t testing.TB, o Options, snapshot []byte) *Index {
	t.Helper()
	x := open(t, o)
	if err := x.Restore(bytes.NewReader(snapshot), testBinding); err != nil {
		t.Fatal(err)
	}
	return x
}

// busy fills an index with n arrivals of many tenants and kinds, and leaks.
func busy(t testing.TB, rnd *rand.Rand, o Options, n int) *Index {
	t.Helper()
	x := open(t, o)
	for i := range n {
		from := rnd.IntN(20 * n)
		arrive(x, i, fmt.Sprint("t", rnd.IntN(20)), Kind(rnd.IntN(3)), prints(from, from+30)...)
		if rnd.IntN(10) == 0 {
			x.Taint(fmt.Sprint("t", rnd.IntN(20)), prints(from, from+3), at(i))
		}
	}
	return x
}

// same compares all that two indexes answer.
func same(t testing.TB, want, got *Index, n int) {
	t.Helper()
	all := prints(0, 20*n+30)
	for _, tenant := range []string{"t0", "t1", "nobody"} {
		if diff := cmp.Diff(want.Lookup(nil, tenant, all), got.Lookup(nil, tenant, all)); diff != "" {
			t.Fatalf("as %s (-want +got):\n%s", tenant, diff)
		}
		for _, p := range all[:min(300, len(all))] {
			if want.Tainted(tenant, p) != got.Tainted(tenant, p) {
				t.Fatalf("as %s: one is tainted and the other not", tenant)
			}
		}
	}
	a, b := want.Stats(), got.Stats()
	if a.Prints != b.Prints || a.Tenants != b.Tenants || a.Horizon != b.Horizon || b.EvictedEarly != 0 {
		t.Errorf("got %+v, want %+v", b, a)
	}
}

// An index that was restored answers and goes on as the one that was saved.
func TestSnapshot(t *testing.T) {
	rnd := seeded(t)
	for range 5 {
		const n = 400
		o := Options{Horizon: 5 * time.Minute}
		x := busy(t, rnd, o, n)
		y := restoredFrom(t, o, saved(t, x))
		same(t, x, y, n)
		for i := range 200 { // on through an expiry
			tenant, k, from := fmt.Sprint("t", rnd.IntN(25)), Kind(rnd.IntN(3)), rnd.IntN(20*n)
			arrive(x, n+2*i, tenant, k, prints(from, from+30)...)
			arrive(y, n+2*i, tenant, k, prints(from, from+30)...)
		}
		same(t, x, y, n)
	}
	same(t, open(t, Options{}), restoredFrom(t, Options{}, saved(t, open(t, Options{}))), 10)
}

// A snapshot that is larger than the budget keeps the newest and counts the
// rest.
func TestSnapshotLargerThanBudget(t *testing.T) {
	big := open(t, Options{Bytes: 64 << 20, Horizon: time.Hour, Epochs: 60})
	for i := range 60 {
		arrive(big, 60*i, "A", Prompt, prints(i*2000, (i+1)*2000)...)
	}
	x := restoredFrom(t, Options{Bytes: 2 << 20, Horizon: time.Hour, Epochs: 60}, saved(t, big))
	s := x.Stats()
	if s.Prints+int(s.EvictedEarly) != 60*2000 || s.Prints < 20_000 || s.Bytes > 2<<20 {
		t.Errorf("%d prints and %d evicted in %d bytes; want 120,000 in all, and the budget used", s.Prints, s.EvictedEarly, s.Bytes)
	}
	if _, ok := look(x, "B", print(60*2000-1)); !ok {
		t.Error("the newest print is gone")
	}
	if _, ok := look(x, "B", print(0)); ok {
		t.Error("the oldest print stayed")
	}
}

// Another key is refused and not misread.
func TestSnapshotOfAnotherKey(t *testing.T) {
	x := open(t, Options{})
	arrive(x, 1, "A", Prompt, print(1))
	y := open(t, Options{})
	err := y.Restore(bytes.NewReader(saved(t, x)), [16]byte{9})
	if !errors.Is(err, ErrKey) || errors.Is(err, ErrDamaged) || y.Stats().Prints != 0 {
		t.Errorf("got %v and %d prints, want %v and none", err, y.Stats().Prints, ErrKey)
	}
}

// Any change of any byte, and any cut, is noticed before the index is touched.
func TestDamagedSnapshot(t *testing.T) {
	rnd := seeded(t)
	good := saved(t, busy(t, rnd, Options{}, 6))
	try := func(what string, b []byte) {
		t.Helper()
		x := open(t, Options{})
		err := x.Restore(bytes.NewReader(b), testBinding)
		if !errors.Is(err, ErrDamaged) && (err == nil || !strings.Contains(err.Error(), "format")) {
			t.Fatalf("%s: got %v, want %v", what, err, ErrDamaged)
		}
		if s := x.Stats(); s.Prints+s.Owners+s.Tenants != 0 {
			t.Fatalf("%s: the index holds something", what)
		}
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1 << rnd.IntN(8)
		try(fmt.Sprintf("byte %d of %d changed", i, len(good)), b)
		try(fmt.Sprintf("cut at %d of %d", i, len(good)), good[:i])
	}
	try("more behind the end", append(bytes.Clone(good), good...))
	try("a byte behind the end", append(bytes.Clone(good), 'I'))
}

func FuzzRestore(f *testing.F) {
	x, _ := New(Options{})
	x.Add(Owner{Tenant: "A", Exchange: "e", At: zero}, prints(0, 5))
	x.Taint("B", prints(0, 2), zero)
	var b bytes.Buffer
	_ = x.Save(&b, testBinding)
	f.Add(b.Bytes(), false)
	f.Add(b.Bytes()[:40], true)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend {
			b = mended(b)
		}
		x := open(t, Options{Bytes: 1 << 20})
		_ = x.Restore(bytes.NewReader(b), testBinding)
		x.Lookup(nil, "A", prints(0, 5))
		arrive(x, 1, "C", Prompt, prints(0, 5)...)
		x.Advance(at(1 << 20))
	})
}

// mended gives every block of b a checksum that is right.
func mended(b []byte) []byte {
	var out bytes.Buffer
	s := &snapshotWriter{w: bufio.NewWriter(&out)}
	for len(b) > 5 {
		n := min(int(b[1])|int(b[2])<<8, len(b)-5)
		s.block(b[0], b[5:5+n])
		b = b[min(len(b), 5+n+4):]
	}
	_ = s.w.Flush()
	return out.Bytes()
}

// A snapshot is written while readers and writers go on; all that was there
// before is in it, each print with its owner.
func TestSnapshotBesideTraffic(t *testing.T) {
	x := open(t, Options{Horizon: time.Hour})
	before := prints(0, 5000)
	arrive(x, 0, "A", Prompt, before...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				from := 5000 + (i*40+w*20)%20000
				x.Add(Owner{Tenant: fmt.Sprint("t", i%50), Exchange: fmt.Sprint(w, i), At: at(1 + i/1000)}, prints(from, from+40))
				x.Lookup(nil, "B", before[:50])
			}
		})
	}
	for range 10 {
		y := restoredFrom(t, Options{Horizon: time.Hour}, saved(t, x))
		m := y.Lookup(nil, "B", before)
		if len(m) != len(before) {
			t.Errorf("%d of %d prints", len(m), len(before))
		}
		for i := range m {
			if m[i].Owner.Exchange != "A-0" || !m[i].Foreign() {
				t.Fatalf("print %d: %+v", i, m[i])
			}
		}
	}
	close(stop)
	wg.Wait()
}

// plug is a file system whose power fails at a given step. What was not synced
// then may be there in part, and a name that was not synced may be the old one.
type plug struct {
	steps int // until the power fails; negative: never
	files map[string]*plugFile
	names map[string]*plugFile // as they last
	n     int
}

type plugFile struct {
	fs      *plug
	name    string
	data    []byte
	durable int // bytes that were synced
	at      int
}

var errPower = errors.New("no power")

func (p *plug) step() error {
	if p.steps == 0 {
		return errPower
	}
	p.steps--
	return nil
}

func (p *plug) Open(name string) (File, error) {
	f := p.files[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return &plugFile{fs: p, name: name, data: f.data}, nil
}

func (p *plug) CreateTemp(dir, pattern string) (File, error) {
	if err := p.step(); err != nil {
		return nil, err
	}
	p.n++
	f := &plugFile{fs: p, name: filepath.Join(dir, strings.Replace(pattern, "*", fmt.Sprint(p.n), 1))}
	p.files[f.name] = f
	return f, nil
}

func (p *plug) Rename(from, to string) error {
	if err := p.step(); err != nil {
		return err
	}
	p.files[to] = p.files[from]
	delete(p.files, from)
	return nil
}

func (p *plug) Remove(name string) error {
	if err := p.step(); err != nil {
		return err
	}
	delete(p.files, name)
	return nil
}

func (p *plug) SyncDir(string) error {
	if err := p.step(); err != nil {
		return err
	}
	p.names = maps.Clone(p.files)
	return nil
}

func (f *plugFile) Name() string { return f.name }
func (f *plugFile) Write(b []byte) (int, error) {
	if err := f.fs.step(); err != nil {
		return 0, err
	}
	f.data = append(f.data, b...)
	return len(b), nil
}

func (f *plugFile) Sync() error {
	if err := f.fs.step(); err != nil {
		return err
	}
	f.durable = len(f.data)
	return nil
}

func (f *plugFile) Close() error { return nil }
func (f *plugFile) Read(b []byte) (int, error) {
	if f.at == len(f.data) {
		return 0, io.EOF
	}
	n := copy(b, f.data[f.at:])
	f.at += n
	return n, nil
}

func (f *plugFile) Seek(offset int64, _ int) (int64, error) {
	f.at = int(offset)
	return offset, nil
}

// after returns what may be there when the power is back: under either set of
// names, with some of what was not synced.
func (p *plug) after(rnd *rand.Rand, oldNames bool) *plug {
	names := p.files
	if oldNames {
		names = p.names
	}
	q := &plug{steps: -1, files: map[string]*plugFile{}}
	for name, f := range names {
		kept := f.durable + rnd.IntN(len(f.data)-f.durable+1)
		q.files[name] = &plugFile{fs: q, name: name, data: f.data[:kept:kept]}
	}
	return q
}

// Wherever the power fails, the name leads to the whole old or the whole new
// snapshot.
func TestPowerFailure(t *testing.T) {
	rnd := seeded(t)
	const name = "/state/index"
	older, newer := open(t, Options{}), open(t, Options{})
	arrive(older, 1, "A", Prompt, prints(0, 10000)...)
	arrive(newer, 2, "B", Prompt, prints(0, 25000)...)
	outcomes := map[string]int{}
	for steps := 0; ; steps++ {
		p := &plug{steps: -1, files: map[string]*plugFile{}}
		if err := older.SaveFile(p, name, testBinding); err != nil {
			t.Fatal(err)
		}
		p.steps = steps
		err := newer.SaveFile(p, name, testBinding)
		if err != nil && !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		for i := range 20 {
			q := p.after(rnd, i%2 == 0)
			x := open(t, Options{})
			if err := x.RestoreFile(q, name, testBinding); err != nil {
				t.Fatalf("after %d steps: %v", steps, err)
			}
			n := x.Stats().Prints
			if n != 10000 && n != 25000 || err == nil && n != 25000 {
				t.Fatalf("after %d steps (%v): %d prints, want those of the old snapshot or of the new one", steps, err, n)
			}
			outcomes[fmt.Sprint(n)]++
		}
		if err == nil {
			break
		}
	}
	if outcomes["10000"] < 20 || outcomes["25000"] < 20 {
		t.Errorf("%v: want both outcomes", outcomes)
	}
}

// A damaged file is set aside under a name that the error tells, and the next
// start begins anew.
func TestDamagedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "index")
	x := open(t, Options{})
	if err := x.RestoreFile(Disk{}, name, testBinding); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want %v", err, fs.ErrNotExist)
	}
	if err := os.WriteFile(name, []byte("I something"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := x.RestoreFile(Disk{}, name, testBinding)
	if !errors.Is(err, ErrDamaged) {
		t.Fatalf("got %v, want %v", err, ErrDamaged)
	}
	left, _ := filepath.Glob(name + "*")
	if len(left) != 1 || !strings.HasSuffix(err.Error(), left[0]) || !strings.Contains(left[0], ".damaged-") {
		t.Errorf("files %v after %v; want the one that the error names", left, err)
	}
	arrive(x, 1, "A", Prompt, print(1))
	if err := x.SaveFile(Disk{}, name, testBinding); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	y := open(t, Options{})
	if err := y.RestoreFile(Disk{}, name, testBinding); err != nil || y.Stats().Prints != 1 {
		t.Errorf("%d prints, %v; want 1", y.Stats().Prints, err)
	}
	if err := y.RestoreFile(Disk{}, name, [16]byte{}); !errors.Is(err, ErrKey) {
		t.Errorf("another key: %v, want %v", err, ErrKey)
	}
	if _, err := os.Stat(name); err != nil {
		t.Errorf("the snapshot of another key is gone: %v", err)
	}
}

// sealed is a print under the key of a given number.
func sealed(n int, key int) fingerprint.Print {
	p := print(n)
	for range key {
		p.Hi, p.Lo = p.Lo*0x9e3779b97f4a7c15+1, p.Hi
	}
	return p
}

// unseal leads a print back to the key before.
func unseal(p fingerprint.Print) fingerprint.Print {
	const inverse = 0xf1de83e19937733d // of the odd factor, modulo 2^64
	p.Hi, p.Lo = p.Lo, (p.Hi-1)*inverse
	return p
}

func TestUnseal(t *testing.T) {
	for n := range 100 {
		if got := unseal(sealed(n, 1)); got != print(n) {
			t.Fatalf("print %d: %v, want %v", n, got, print(n))
		}
	}
}

// After a rotation old prints count until its time is over, and no longer.
func TestRekey(t *testing.T) {
	x := open(t, Options{Horizon: time.Hour})
	arrive(x, 1, "A", Prompt, sealed(1, 0), sealed(2, 0))
	x.Taint("B", []fingerprint.Print{sealed(1, 0)}, at(2))
	x.Rekey(unseal, at(100))
	if m, ok := look(x, "B", sealed(1, 1)); !ok || m.Owner.Exchange != "A-1" || !m.Foreign() || m.Word != 1 {
		t.Errorf("after the rotation: %+v, %v", m, ok)
	}
	if !x.Tainted("B", sealed(1, 1)) {
		t.Error("the taint is lost")
	}
	arrive(x, 3, "C", Prompt, sealed(1, 1))
	if s := x.Stats(); s.Prints != 2 {
		t.Errorf("%d prints, want 2: the entry moves", s.Prints)
	}
	x.Advance(at(101))
	if m, ok := look(x, "B", sealed(1, 1)); !ok || m.Owner.Exchange != "A-1" || m.Tenants != 2 {
		t.Errorf("what moved: %+v, %v", m, ok)
	}
	if _, ok := look(x, "B", sealed(2, 1)); ok {
		t.Error("what did not move still counts")
	}
}

// The cost of writing and reading an index of a million prints, by the bytes of
// its snapshot.
func BenchmarkSnapshot(b *testing.B) {
	x, err := New(Options{Bytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	const n = 1 << 20
	for i := range n / 100 {
		x.Add(Owner{Tenant: fmt.Sprint("t", i%100), Exchange: fmt.Sprint("exchange-", i), At: at(i / 100)}, prints(i*100, (i+1)*100))
	}
	snapshot := saved(b, x)
	b.Run("save", func(b *testing.B) {
		b.SetBytes(int64(len(snapshot)))
		for b.Loop() {
			if err := x.Save(io.Discard, testBinding); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(snapshot)))
		for b.Loop() {
			y, err := New(Options{Bytes: 1 << 30})
			if err != nil {
				b.Fatal(err)
			}
			if err := y.Restore(bytes.NewReader(snapshot), testBinding); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/print")
	})
}
