package e2e

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/auditproxy/auditproxy"

// room is what one package may import: packages of ours, and net/http or not.
type room struct {
	pkg  string
	ours []string
	http bool
}

// house is the package table of the design. A package imports only packages
// above its own.
var house = []room{
	{pkg: "fingerprint"},
	{pkg: "store", ours: []string{"fingerprint"}},
	{pkg: "detectors", ours: []string{"fingerprint", "store"}},
	{pkg: "proxy/dialect"},
	{pkg: "proxy/audit", ours: []string{"fingerprint", "store", "detectors", "proxy/dialect"}},
	{pkg: "proxy/replay", ours: []string{"detectors", "proxy/audit", "proxy/dialect"}},
	{pkg: "proxy/admin", http: true},
	{pkg: "proxy", ours: []string{"proxy/audit", "proxy/dialect"}, http: true},
	{pkg: "gpukv"},
	{pkg: "sim", ours: []string{"gpukv"}, http: true},
	{pkg: "cmd/auditproxy", ours: []string{"fingerprint", "store", "detectors", "proxy", "proxy/admin", "proxy/audit", "proxy/dialect", "proxy/replay", "gpukv", "sim"}, http: true},
	{pkg: "e2e"},
}

// leaves are the libraries that live in one package each.
var leaves = map[string]string{
	"github.com/gin-gonic/gin":       "proxy/admin",
	"github.com/redis/go-redis":      "store/redisfeed",
	"github.com/blevesearch/bleve":   "store/evidence",
	"github.com/spf13/cobra":         "cmd/auditproxy",
	"github.com/tidwall/gjson":       "proxy/dialect",
	"github.com/dchest/siphash":      "fingerprint",
	"github.com/oklog/ulid":          "proxy",
	"github.com/klauspost/compress/": "proxy/",
}

func TestImportGraph(t *testing.T) {
	all, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports, Dir: ".."}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if packages.PrintErrors(all) > 0 {
		t.Fatal("packages do not load")
	}
	seen := map[string]bool{}
	for _, p := range all {
		name := strings.TrimPrefix(p.PkgPath, module+"/")
		seen[name] = true
		if strings.Contains(name, "/internal/") {
			continue // tools of one package
		}
		row := slices.IndexFunc(house, func(h room) bool { return h.pkg == name })
		if row < 0 {
			t.Errorf("package %s is not in the table", name)
			continue
		}
		for path := range p.Imports {
			if path == "net/http" && !house[row].http {
				t.Errorf("%s imports net/http", name)
			}
			for lib, home := range leaves {
				if strings.HasPrefix(path, lib) && !strings.HasPrefix(name, home) {
					t.Errorf("%s imports %s, which lives in %s", name, path, home)
				}
			}
			ours, is := strings.CutPrefix(path, module+"/")
			if is && !strings.HasPrefix(ours, name+"/internal/") && !slices.Contains(house[row].ours, ours) {
				t.Errorf("%s imports %s, which the table does not allow", name, ours)
			}
		}
	}
	for i, h := range house {
		if !seen[h.pkg] {
			t.Errorf("package %s is in the table but not in the tree", h.pkg)
		}
		for _, o := range h.ours {
			if !slices.ContainsFunc(house[:i], func(above room) bool { return above.pkg == o }) {
				t.Errorf("%s may import %s, which is not above it in the table", h.pkg, o)
			}
		}
	}
}
