// Package replay audits exchanges that were captured earlier. It puts the
// records of a log into the order of their events and hands them to the same
// engine that audits live traffic.
package replay

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/auditproxy/auditproxy/proxy/audit"
)

// Options configure a run.
type Options struct {
	// Window is how far records may be out of order, in event time; 0 means
	// 15 minutes. It must be at least as long as the longest exchange.
	Window time.Duration
	// WindowBytes bounds the bodies that are held to put records in order; 0
	// means 1 GiB. Over it the oldest records go on before their window is
	// over.
	WindowBytes int64
	// Bad takes the errors of records that can't be read; nil means that they
	// are only counted.
	Bad func(error)
	// Progress is told how many bytes of the uncompressed log have been read,
	// now and then; nil means that nobody asks.
	Progress func(bytes int64, records int)
}

// Result counts what a run read.
type Result struct {
	Records int // audited
	Bad     int // lines that could not be read, each told to Options.Bad
	Late    int // records that came after their window, audited at a later time than their own
}

// Run audits the native captures that the files hold, "-" being stdin, in
// the order of their events over all files.
func Run(e *audit.Engine, files []string, stdin io.Reader, o Options) (Result, error) {
	if o.Window == 0 {
		o.Window = 15 * time.Minute
	}
	if o.WindowBytes == 0 {
		o.WindowBytes = 1 << 30
	}
	if o.Window < 0 || o.WindowBytes < 0 {
		return Result{}, errors.New("replay: a negative window")
	}
	r := &run{engine: e, o: o}
	for _, name := range files {
		if err := r.file(name, stdin); err != nil {
			return r.result, err
		}
	}
	r.release(func(*audit.Record) bool { return true })
	r.leave(func(time.Time) bool { return true })
	return r.result, nil
}

// run orders events. Records wait by their start until their window is over;
// then their requests arrive, in order, and their ends wait by their time.
type run struct {
	engine  *audit.Engine
	o       Options
	result  Result
	waiting records
	bytes   int64 // of the waiting records' bodies
	newest  time.Time
	arrived time.Time // start of the newest arrival
	open    ends
	read    int64
}

func (r *run) file(name string, stdin io.Reader) (err error) {
	f, err := Open(name, stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := newLines(f)
	base := r.read
	for {
		line, err := in.next()
		r.read = base + in.after
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLineTooLong):
			r.bad(in, name, err)
			continue
		case err != nil: // the rest can't be read: say so, and audit what came
			r.bad(in, name, err)
			return nil
		}
		rec, err := parseCapture(line)
		if err != nil {
			r.bad(in, name, err)
			continue
		}
		r.take(rec)
		if r.o.Progress != nil && in.number%64 == 0 {
			r.o.Progress(r.read, r.result.Records)
		}
	}
}

func (r *run) bad(in *lines, name string, err error) {
	r.result.Bad++
	if r.o.Bad != nil {
		r.o.Bad(fmt.Errorf("%s: %w", where(name, in), err))
	}
}

func (r *run) take(rec *audit.Record) {
	if rec.Start.Before(r.arrived) {
		r.result.Late++
	}
	heap.Push(&r.waiting, rec)
	r.bytes += size(rec)
	if rec.End.After(r.newest) {
		r.newest = rec.End
	}
	due := r.newest.Add(-r.o.Window)
	r.release(func(oldest *audit.Record) bool {
		return oldest.Start.Before(due) || r.bytes > r.o.WindowBytes
	})
}

// release lets waiting requests arrive, oldest first, while due says so.
func (r *run) release(due func(oldest *audit.Record) bool) {
	for len(r.waiting) > 0 && due(r.waiting[0]) {
		rec := heap.Pop(&r.waiting).(*audit.Record)
		r.bytes -= size(rec)
		// A response that ends at the very time at which a request arrives
		// ends after it: the donor was there in time.
		r.leave(func(end time.Time) bool { return end.Before(rec.Start) })
		t := r.engine.Arrive(rec)
		rec.RequestBody = nil
		if rec.Start.After(r.arrived) {
			r.arrived = rec.Start
		}
		heap.Push(&r.open, exchange{rec, t})
		r.result.Records++
	}
}

// leave ends open exchanges, earliest first, while due says so.
func (r *run) leave(due func(end time.Time) bool) {
	for len(r.open) > 0 && due(r.open[0].rec.End) {
		x := heap.Pop(&r.open).(exchange)
		r.engine.Leave(x.t, x.rec)
	}
}

func size(r *audit.Record) int64 {
	return int64(len(r.RequestBody) + len(r.ResponseBody))
}

// records is a heap by start, then id.
type records []*audit.Record

func (h records) Len() int      { return len(h) }
func (h records) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *records) Push(x any)   { *h = append(*h, x.(*audit.Record)) }
func (h records) Less(i, j int) bool {
	if !h[i].Start.Equal(h[j].Start) {
		return h[i].Start.Before(h[j].Start)
	}
	return h[i].ID < h[j].ID
}

func (h *records) Pop() any { return pop((*[]*audit.Record)(h)) }

type exchange struct {
	rec *audit.Record
	t   *audit.Transaction
}

// ends is a heap by end, then id.
type ends []exchange

func (h ends) Len() int      { return len(h) }
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)   { *h = append(*h, x.(exchange)) }
func (h ends) Less(i, j int) bool {
	if !h[i].rec.End.Equal(h[j].rec.End) {
		return h[i].rec.End.Before(h[j].rec.End)
	}
	return h[i].rec.ID < h[j].rec.ID
}

func (h *ends) Pop() any { return pop((*[]exchange)(h)) }

func pop[T any](s *[]T) T {
	var zero T
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last] = zero
	*s = (*s)[:last]
	return x
}
