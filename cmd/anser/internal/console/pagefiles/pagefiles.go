// Package pagefiles has the files of the console's page. They are served as they are in the
// repository: there is nothing to build, and the page loads nothing from elsewhere.
package pagefiles

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed files
var files embed.FS

// Handler serves the page.
func Handler() http.Handler {
	root, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // the name is a constant
	}
	server := http.FileServerFS(root)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		server.ServeHTTP(w, r)
	})
}
