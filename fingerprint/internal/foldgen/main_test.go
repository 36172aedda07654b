package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode"
)

// TestCurrent regenerates the table and compares it with the committed one.
func TestCurrent(t *testing.T) {
	got, err := os.ReadFile("../../fold_table.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "Unicode "+unicode.Version+";") {
		t.Skipf("the committed table is of another Unicode version than %s", unicode.Version)
	}
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("fold_table.go is stale: run go generate in fingerprint")
	}
}
