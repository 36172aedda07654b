package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// Snapshots
//
// A snapshot is the index as one stream of blocks, so that a restart does not
// begin blind. A block is
//
//	type 1, length of the payload 4, payload, CRC-32C of all of these 4
//
// in little endian, about 1 MiB long at most. The types, in the order of the file:
//
//	'I'  format 4 (1), binding 16: the ID of the keys that prints are made under
//	'T'  names of tenants, in the order of their numbers: length 4, bytes
//	'O'  owners, numbered from 1 as they come: tenant 4, kind 1, Unix time in
//	     nanoseconds 8, length of the exchange's id 4, bytes
//	'E'  entries, 29 bytes each: hi 8, lo 4, word 4, owner 4, second tenant 4,
//	     epoch 4, flags 1
//	'X'  taints, 16 bytes each: hi 8, tenant 4, epoch 4
//	'Z'  the end: newest event 8, number of the oldest epoch 4, number of live
//	     epochs 4, start of each 8, count of tenants, owners, entries and taints
//	     8 each
//
// 'T' and 'O' blocks stand before the first entry that names what they hold, and
// entries come shard by shard. An entry and its owner are written together, with
// the shard locked for reading, so what is written of a text is what the index
// knew of it at one moment. Different shards are written at different moments:
// traffic goes on meanwhile, and what arrives may be in the snapshot or not. The
// one at shutdown is exact.
//
// A file without its end, or with any block that does not add up, is damaged as a
// whole. It is read twice: once to know that it is whole, before the index is
// touched, and once to fill it. An entry costs 29 bytes and its share of an owner;
// no text stands in it, but names of tenants and ids of exchanges do. Numbers of
// tenants and epochs are those of the index that was saved.
//
// Not taken: a memory-mapped table. The table's layout would become a format, a
// torn page would be a print with another's owner, and reading costs about a second
// per gigabyte.

// ErrKey says that a snapshot was made under another key.
var ErrKey = errors.New("made under another key")

// ErrDamaged says that a snapshot is not whole.
var ErrDamaged = errors.New("damaged")

const (
	snapshotFormat = 1
	blockBytes     = 1 << 20  // a payload ends behind the record that reaches it
	longestBlock   = 16 << 20 // is read; names and ids are never so long
	entryWire      = 29
	taintWire      = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// totals counts what a snapshot holds.
type totals struct{ tenants, owners, entries, taints uint64 }

// snapshotWriter writes blocks.
type snapshotWriter struct {
	w                        *bufio.Writer
	err                      error
	sum                      totals
	refs                     map[uint32]writtenOwner // by the index's reference
	tenants, owners, entries []byte

	live  []entry // of the shard being written
	first []record
}

// writtenOwner is an owner that stands in the file. A reference may be used
// again for another record while the snapshot is written.
type writtenOwner struct {
	record
	number uint32
}

func (s *snapshotWriter) block(kind byte, payload []byte) {
	if s.err != nil {
		return
	}
	if len(payload) > longestBlock {
		s.err = fmt.Errorf("snapshot: a name of %d bytes", len(payload))
		return
	}
	head := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, payload)
	for _, b := range [][]byte{head, payload, binary.LittleEndian.AppendUint32(nil, sum)} {
		if _, err := s.w.Write(b); err != nil {
			s.err = err
			return
		}
	}
}

// flush writes what was gathered: names first, then owners, then the entries
// that name them.
func (s *snapshotWriter) flush() {
	for _, b := range []struct {
		kind byte
		buf  *[]byte
	}{{'T', &s.tenants}, {'O', &s.owners}, {'E', &s.entries}} {
		if len(*b.buf) > 0 {
			s.block(b.kind, *b.buf)
			*b.buf = (*b.buf)[:0]
		}
	}
}

func (s *snapshotWriter) room() {
	if max(len(s.tenants), len(s.owners), len(s.entries)) >= blockBytes {
		s.flush()
	}
}

// names gathers the names of tenants that were not written yet.
func (s *snapshotWriter) names(x *Index) {
	for _, name := range x.names.from(int(s.sum.tenants)) {
		s.tenants = binary.LittleEndian.AppendUint32(s.tenants, uint32(len(name)))
		s.tenants = append(s.tenants, name...)
		s.sum.tenants++
		s.room()
	}
}

// owner returns the number of an entry's owner in the file.
func (s *snapshotWriter) owner(ref uint32, r record) uint32 {
	if w, ok := s.refs[ref]; ok && w.record == r {
		return w.number
	}
	s.sum.owners++
	number := uint32(s.sum.owners)
	s.refs[ref] = writtenOwner{r, number}
	b := binary.LittleEndian.AppendUint32(s.owners, r.tenant)
	b = append(b, byte(r.kind))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.at.UnixNano()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.exchange)))
	s.owners = append(b, r.exchange...)
	return number
}

// shard gathers the live entries of a shard.
func (s *snapshotWriter) shard(x *Index, i int) {
	s.live, s.first = x.copyShard(s.live[:0], s.first[:0], i)
	s.names(x) // those that the entries name are known by now
	for j := range s.live {
		e := &s.live[j]
		number := s.owner(e.owner, s.first[j])
		b := binary.LittleEndian.AppendUint64(s.entries, e.hi)
		b = binary.LittleEndian.AppendUint32(b, e.lo)
		b = binary.LittleEndian.AppendUint32(b, e.word)
		b = binary.LittleEndian.AppendUint32(b, number)
		b = binary.LittleEndian.AppendUint32(b, e.second)
		b = binary.LittleEndian.AppendUint32(b, e.epoch)
		s.entries = append(b, byte(e.flags))
		s.sum.entries++
		s.room()
	}
}

// Save writes a snapshot of the index to w. The binding names the keys that its
// prints are made under. Traffic may go on.
func (x *Index) Save(w io.Writer, binding [16]byte) error {
	s := &snapshotWriter{w: bufio.NewWriterSize(w, 1<<18), refs: map[uint32]writtenOwner{}}
	s.block('I', append(binary.LittleEndian.AppendUint32(nil, snapshotFormat), binding[:]...))
	for i := range x.shards {
		s.shard(x, i)
		if s.err != nil {
			break
		}
	}
	taints := x.taints.list()
	s.names(x)
	s.flush()
	for len(taints) > 0 {
		n := min(len(taints), blockBytes/taintWire)
		b := make([]byte, 0, n*taintWire)
		for _, t := range taints[:n] {
			b = binary.LittleEndian.AppendUint64(b, t.hi)
			b = binary.LittleEndian.AppendUint32(b, t.tenant)
			b = binary.LittleEndian.AppendUint32(b, t.epoch)
		}
		s.block('X', b)
		s.sum.taints += uint64(n)
		taints = taints[n:]
	}
	now, oldest, starts := x.epochs.save()
	b := binary.LittleEndian.AppendUint64(nil, uint64(now.UnixNano()))
	b = binary.LittleEndian.AppendUint32(b, oldest)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(starts)))
	for _, at := range starts {
		b = binary.LittleEndian.AppendUint64(b, uint64(at.UnixNano()))
	}
	for _, n := range []uint64{s.sum.tenants, s.sum.owners, s.sum.entries, s.sum.taints} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	s.block('Z', b)
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}

// copyShard appends the live entries of a shard, and the record of the owner of
// each, as they are at one moment.
func (x *Index) copyShard(all []entry, first []record, i int) ([]entry, []record) {
	oldest := x.epochs.oldest.Load()
	s := &x.shards[i]
	s.mu.RLock()
	defer s.mu.RUnlock()
	for j := range s.entries {
		if e := &s.entries[j]; e.owner != 0 && e.epoch >= oldest {
			all = append(all, *e)
			first = append(first, x.owners.at(e.owner))
		}
	}
	return all, first
}

// wireTime reads a time that was written as Unix nanoseconds.
func wireTime(b []byte) time.Time {
	return time.Unix(0, int64(binary.LittleEndian.Uint64(b))).UTC()
}

// damaged returns an error that says where a snapshot does not add up.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
