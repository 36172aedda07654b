//go:build linux || darwin || freebsd || netbsd || openbsd

package proxy

import (
	"net"
	"syscall"
)

// pending says whether bytes, an end or an error lie ready on a connection
// from which nothing should come.
func pending(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	var b [1]byte
	var found error
	err = raw.Control(func(fd uintptr) {
		for {
			// The descriptor is in non-blocking mode.
			_, _, found = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
			if found != syscall.EINTR {
				return
			}
		}
	})
	return err != nil || found != syscall.EAGAIN
}
