package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/auditproxy/auditproxy/proxy/dialect"
)

func newDialects() *cobra.Command {
	return &cobra.Command{
		Use:   "dialects",
		Short: "List the APIs that are read, as a Markdown table",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return writeDialects(cmd.OutOrStdout()) },
	}
}

// writeDialects writes the table of the README.
func writeDialects(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| dialect | API | paths | responses |\n|---|---|---|---|\n")
	for _, d := range dialect.All() {
		about, ok := d.(dialect.Describer)
		if !ok {
			return fmt.Errorf("dialect %s does not say what it speaks", d.Name())
		}
		a := about.About()
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", d.Name(), a.API, strings.Join(a.Paths, "`<br>`"), strings.Join(a.Formats, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
