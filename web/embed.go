// Package web is the Portal: a React application whose built files are part of the binary. The sources are in src;
// 'make web' builds them into dist, which holds nothing but a placeholder until then.
//
// It may import the standard library only.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Dist are the built files: index.html, and what it names. Without a build there is no index.html.
func Dist() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // only when the folder's name is not a valid path
	}
	return sub
}
