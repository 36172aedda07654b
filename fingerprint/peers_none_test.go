//go:build !peers

package fingerprint

// peers are references that need modules which the repository doesn't.
var peers []reference
