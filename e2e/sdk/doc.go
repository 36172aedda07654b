// Package sdk holds the tests in which the official client libraries talk to
// the simulated engine, directly and through the sidecar, and see the same.
//
// It is a module of its own, so that the libraries and all that they bring are
// no dependencies of auditproxy. It imports nothing of auditproxy either: the
// tests build the command and drive it as processes.
package sdk
