package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// tunnel passes an upgraded connection through, both ways and unaudited, until
// both sides have ended it, one has broken it, or the proxy shuts down. The
// exchange ends with the upgrade: what follows is no answer.
func (l *leg) tunnel(res *http.Response) (cut dialect.Reason, broken bool) {
	backend, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		return l.refuse(failProtocol, errors.New("upgraded connection can't be written to"))
	}
	l.x.respond(res.StatusCode, res.Header)
	l.x.end(audit.ReasonUpgrade)

	client, buffered, err := l.control.Hijack()
	if err != nil {
		return audit.ReasonUpgrade, true
	}
	defer func() { _ = client.Close() }()
	_ = client.SetDeadline(time.Time{}) // the server may have left one
	head := &http.Response{
		StatusCode: res.StatusCode, ProtoMajor: 1, ProtoMinor: 1,
		Header: res.Header,
	}
	if err := head.Write(buffered); err != nil {
		return audit.ReasonUpgrade, false
	}
	if err := buffered.Flush(); err != nil {
		return audit.ReasonUpgrade, false
	}

	ends := make(chan error, 2)
	var passing sync.WaitGroup
	passing.Go(func() { ends <- pass(backend, buffered.Reader) })
	passing.Go(func() { ends <- pass(client, backend) })
	for range 2 {
		select {
		case err = <-ends:
		case <-l.p.quit:
			err = net.ErrClosed
		}
		if err != nil {
			break
		}
	}
	_ = client.Close()
	_ = backend.Close()
	passing.Wait()
	return audit.ReasonUpgrade, false
}

// pass copies one direction to its end, and passes the end on.
func pass(dst io.Writer, src io.Reader) error {
	if _, err := io.Copy(dst, src); err != nil {
		return err
	}
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return io.EOF // no half can be closed, so all is
}
