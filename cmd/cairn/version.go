package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the build: -ldflags "-X main.version=...".
var version = "dev"

func versionCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.allowOutput("text", "json"); err != nil {
				return err
			}
			if g.output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{
					"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "commit": commit(),
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "cairn %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// commit is the commit that the binary was built from; nil when the build did not record it.
func commit() *string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return &s.Value
		}
	}
	return nil
}
