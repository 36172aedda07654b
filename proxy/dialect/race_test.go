//go:build race

package dialect

// raceEnabled says whether the tests run under the race detector, which makes
// them several times slower.
const raceEnabled = true
