package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
)

// mostEpochs bounds the numbers of epochs, which grow by some dozens a day.
const mostEpochs = 1 << 22

// snapshotReader reads the blocks of a snapshot. It allocates no more than the
// longest block, whatever the file says.
type snapshotReader struct {
	r       *bufio.Reader
	n       int // blocks read
	payload []byte
}

// next returns the next block. Its payload is valid until the next call. The
// error is [io.EOF] at the end of the file.
func (s *snapshotReader) next() (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = damaged("block %d is cut off", s.n)
		}
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > longestBlock {
		return 0, nil, damaged("block %d has %d bytes", s.n, n)
	}
	if cap(s.payload) < int(n)+4 {
		s.payload = make([]byte, n+4)
	}
	b := s.payload[:n+4]
	if _, err := io.ReadFull(s.r, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = damaged("block %d is cut off", s.n)
		}
		return 0, nil, err
	}
	sum := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, b[:n])
	if sum != binary.LittleEndian.Uint32(b[n:]) {
		return 0, nil, damaged("checksum of block %d", s.n)
	}
	s.n++
	return head[0], b[:n], nil
}

// restored is what the first reading learns.
type restored struct {
	ended   bool        // the last block was read
	now     time.Time   // newest event
	oldest  uint32      // number of the first live epoch
	starts  []time.Time // of the live epochs
	sum     totals
	shards  [shardCount]int
	epochs  []int64 // entries of each, by number
	binding [16]byte
}

// survey reads a snapshot to its end and checks that it is whole.
func survey(r io.Reader) (*restored, error) {
	s := &snapshotReader{r: bufio.NewReaderSize(r, 1<<18)}
	out := &restored{}
	for {
		kind, b, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && !out.ended:
			return nil, damaged("it has no end")
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case out.ended:
			return nil, damaged("block %d is behind the end", s.n-1)
		case (s.n == 1) != (kind == 'I'):
			return nil, damaged("block %d has type %q", s.n-1, kind)
		}
		if err := out.count(kind, b); err != nil {
			return nil, err
		}
	}
}

// in returns how many entries an epoch has.
func (o *restored) in(epoch uint32) int64 {
	if int(epoch) >= len(o.epochs) {
		return 0
	}
	return o.epochs[epoch]
}

// count checks one block and counts what it holds.
func (o *restored) count(kind byte, b []byte) error {
	switch kind {
	case 'I':
		if len(b) != 20 {
			return damaged("the first block has %d bytes", len(b))
		}
		if v := binary.LittleEndian.Uint32(b); v != snapshotFormat {
			return fmt.Errorf("format %d, want %d", v, snapshotFormat)
		}
		o.binding = [16]byte(b[4:])
	case 'T':
		return each(b, 4, func([]byte, string) error {
			o.sum.tenants++
			return nil
		})
	case 'O':
		return each(b, 17, func(fixed []byte, _ string) error {
			if t := binary.LittleEndian.Uint32(fixed); t == 0 || uint64(t) > o.sum.tenants || Kind(fixed[4]) > Response {
				return damaged("owner %d is of a tenant or kind that is not there", o.sum.owners)
			}
			o.sum.owners++
			return nil
		})
	case 'E':
		if len(b)%entryWire != 0 {
			return damaged("%d bytes of entries", len(b))
		}
		for ; len(b) > 0; b = b[entryWire:] {
			owner, second := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])
			if owner == 0 || uint64(owner) > o.sum.owners || uint64(second) > o.sum.tenants {
				return damaged("entry %d names an owner or tenant that is not there", o.sum.entries)
			}
			o.shards[binary.LittleEndian.Uint64(b)&(shardCount-1)]++
			epoch := binary.LittleEndian.Uint32(b[24:])
			if epoch >= mostEpochs {
				return damaged("entry %d is of epoch %d", o.sum.entries, epoch)
			}
			for uint32(len(o.epochs)) <= epoch {
				o.epochs = append(o.epochs, 0)
			}
			o.epochs[epoch]++
			o.sum.entries++
		}
	case 'X':
		if len(b)%taintWire != 0 {
			return damaged("%d bytes of taints", len(b))
		}
		for ; len(b) > 0; b = b[taintWire:] {
			if t := binary.LittleEndian.Uint32(b[8:]); t == 0 || uint64(t) > o.sum.tenants {
				return damaged("a taint of a tenant that is not there")
			}
			o.sum.taints++
		}
	case 'Z':
		if len(b) < 48 || len(b) != 48+8*int(binary.LittleEndian.Uint32(b[12:])) {
			return damaged("the end has %d bytes", len(b))
		}
		o.ended, o.now, o.oldest = true, wireTime(b), binary.LittleEndian.Uint32(b[8:])
		counts := b[len(b)-32:]
		said := totals{
			binary.LittleEndian.Uint64(counts), binary.LittleEndian.Uint64(counts[8:]),
			binary.LittleEndian.Uint64(counts[16:]), binary.LittleEndian.Uint64(counts[24:]),
		}
		if said != o.sum {
			return damaged("it holds other counts than its end says")
		}
		for starts := b[16 : len(b)-32]; len(starts) > 0; starts = starts[8:] {
			o.starts = append(o.starts, wireTime(starts))
		}
		if uint64(len(o.epochs)) > uint64(o.oldest)+uint64(len(o.starts)) {
			return damaged("entries of an epoch that has not begun")
		}
	default:
		return damaged("a block of type %q", kind)
	}
	return nil
}

// each splits records of a fixed part, whose last 4 bytes are a length, and so
// many bytes, and stops at the first error.
func each(b []byte, fixed int, do func(fixed []byte, text string) error) error {
	for len(b) > 0 {
		if len(b) < fixed {
			return damaged("a record is cut off")
		}
		n := binary.LittleEndian.Uint32(b[fixed-4:])
		if uint64(n) > uint64(len(b)-fixed) {
			return damaged("a record is cut off")
		}
		if err := do(b[:fixed], string(b[fixed:fixed+int(n)])); err != nil {
			return err
		}
		b = b[fixed+int(n):]
	}
	return nil
}

// Restore fills an index that is empty from a snapshot whose binding is given.
// The error wraps [ErrKey] if it was made under another key, and [ErrDamaged]
// if it is not whole; the index is then as it was. What has no room in the
// budget is left out, the oldest epochs first, and counted as evicted early.
func (x *Index) Restore(r io.ReadSeeker, binding [16]byte) error {
	o, err := survey(r)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if o.binding != binding {
		return fmt.Errorf("snapshot: %w", ErrKey)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	oldest := x.epochs.restore(o, x.o.Bytes/bytesPerPrint)
	f := &filler{x: x, oldest: oldest, live: o.live(oldest), epochs: make([]int64, len(o.epochs))}
	s := &snapshotReader{r: bufio.NewReaderSize(r, 1<<18)}
	for {
		kind, b, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("snapshot: it changed while it was read: %w", err)
		}
		f.take(kind, b)
	}
	f.finish()
	return nil
}

// live estimates how many entries of each shard are restored.
func (o *restored) live(oldest uint32) (n [shardCount]int) {
	kept := int64(0)
	for epoch, k := range o.epochs {
		if uint32(epoch) >= oldest {
			kept += k
		}
	}
	for i, k := range o.shards {
		n[i] = int(int64(k) * kept / max(1, int64(o.sum.entries)))
	}
	return n
}

// filler puts the blocks of a snapshot into an index. What takes a lock of the
// whole index is added up and done at the end.
type filler struct {
	x       *Index
	oldest  uint32
	live    [shardCount]int
	tenants []uint32 // by number in the file: number in the index, 0 if there was no room
	owners  []uint32 // by number in the file: reference
	held    []int64  // by number in the file: entries that name the owner
	epochs  []int64  // entries of each, by number
	early   uint64
}

// finish makes the sums true: each owner is held by its entries alone.
func (f *filler) finish() {
	for i, ref := range f.owners {
		if ref != 0 {
			f.x.owners.hold(ref, f.held[i])
			f.x.owners.release(ref)
		}
	}
	for epoch, n := range f.epochs {
		f.x.epochs.count(uint32(epoch), n)
	}
	f.x.epochs.early.Add(f.early)
}

func (f *filler) take(kind byte, b []byte) {
	x := f.x
	switch kind {
	case 'T':
		_ = each(b, 4, func(_ []byte, name string) error {
			id, _ := x.names.intern(name)
			f.tenants = append(f.tenants, id)
			return nil
		})
	case 'O':
		_ = each(b, 17, func(fixed []byte, exchange string) error {
			r := record{
				tenant: f.tenant(binary.LittleEndian.Uint32(fixed)),
				kind:   Kind(fixed[4]), at: wireTime(fixed[5:]), exchange: exchange,
			}
			ref := uint32(0)
			if r.tenant != 0 {
				ref = x.owners.make(r)
			}
			f.owners, f.held = append(f.owners, ref), append(f.held, 0)
			return nil
		})
	case 'E':
		f.entries(b)
	case 'X':
		for ; len(b) > 0; b = b[taintWire:] {
			if t := f.tenant(binary.LittleEndian.Uint32(b[8:])); t != 0 {
				x.taints.put(binary.LittleEndian.Uint64(b), t, binary.LittleEndian.Uint32(b[12:]), f.oldest)
			}
		}
	}
}

func (f *filler) tenant(number uint32) uint32 {
	if number == 0 || int(number) > len(f.tenants) {
		return 0
	}
	return f.tenants[number-1]
}

// entries puts in entries, which come shard by shard.
func (f *filler) entries(b []byte) {
	var s *shard
	last := -1
	for ; len(b) > 0; b = b[entryWire:] {
		hi := binary.LittleEndian.Uint64(b)
		if i := int(hi & (shardCount - 1)); i != last {
			if s != nil {
				s.mu.Unlock()
			}
			s, last = &f.x.shards[i], i
			s.mu.Lock()
			if n := f.live[i]; n > 0 { // its first entry
				f.live[i] = 0
				s.reserve(f.x, n)
			}
		}
		f.entry(s, hi, b)
	}
	if s != nil {
		s.mu.Unlock()
	}
}

func (f *filler) entry(s *shard, hi uint64, b []byte) {
	owner := binary.LittleEndian.Uint32(b[16:]) - 1
	e := entry{
		hi: hi, lo: binary.LittleEndian.Uint32(b[8:]),
		word:   binary.LittleEndian.Uint32(b[12:]),
		owner:  f.owners[owner],
		second: f.tenant(binary.LittleEndian.Uint32(b[20:])),
		epoch:  binary.LittleEndian.Uint32(b[24:]), flags: flags(b[28]) & (common | said),
	}
	if e.epoch < f.oldest {
		return // expired, or counted as evicted
	}
	if e.owner == 0 || full(s.used, len(s.entries)) && !s.grow(f.x) {
		f.early++
		return
	}
	at := s.place(fingerprint.Print{Hi: e.hi, Lo: uint64(e.lo)}, f.oldest)
	if at.owner != 0 {
		return // it moved to a new key while the snapshot was written, and stands in it twice
	}
	*at = e
	s.used++
	f.held[owner]++
	f.epochs[e.epoch]++
}

// reserve makes a shard large enough for n entries, if the budget has room. The
// shard is locked.
func (s *shard) reserve(x *Index, n int) {
	slots := rounded(n + n/3 + firstSlots)
	if more := slots - len(s.entries); more > 0 && x.space.take(int64(more)*entryBytes) {
		s.rebuild(slots)
	}
}

// restore takes over the epochs of a snapshot. It drops the oldest until the
// rest has at most the given number of entries, and returns the number of the
// oldest that is left.
func (s *epochs) restore(o *restored, most int64) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest, held := o.oldest, int64(0)
	s.now = o.now
	s.list = s.list[:0]
	for i, start := range o.starts {
		s.list = append(s.list, epoch{start: start})
		held += o.in(oldest + uint32(i))
	}
	for len(s.list) > 1 && held > most {
		s.early.Add(uint64(o.in(oldest)))
		held -= o.in(oldest)
		s.list = s.list[1:]
		oldest++
	}
	s.oldest.Store(max(1, oldest))
	return s.oldest.Load()
}
