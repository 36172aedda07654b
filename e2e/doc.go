// Package e2e holds the tests that need more than one package: the whole path
// between real HTTP clients and a simulated engine, live against replay, and
// the import graph.
package e2e
