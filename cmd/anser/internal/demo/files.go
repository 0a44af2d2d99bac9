package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/posts"
	"github.com/anser-rpc/anser/filetransfer"
)

// maxFile is the maximum size of a file that is sent to the demo, in bytes.
const maxFile = 1 << 30

// writeFiles fills the folder that the instances of posts serve.
func writeFiles(folder string) error {
	files := map[string]string{
		"readme.txt":                "The instances of the service posts serve this folder with package filetransfer.\nIt is removed at the end of the demo.\n",
		"attachments/hello.html":    "<!doctype html>\n<title>Hello</title>\n<p>An attachment of a post.</p>\n",
		"attachments/鸿雁.txt":        "A name that is not ASCII.\n",
		"reports/2026/october.csv":  "day,posts\n" + days(31),
		"reports/2026/november.csv": "day,posts\n" + days(30),
	}
	for name, text := range files {
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func days(n int) string {
	var b strings.Builder
	for day := 1; day <= n; day++ {
		fmt.Fprintf(&b, "%d,%d\n", day, 3+day*day%11)
	}
	return b.String()
}

// serveFiles serves a folder on an instance of posts. All of them have the same one.
func serveFiles(s *anser.Server, service, folder string) (closer func() error, err error) {
	if service != posts.Service || folder == "" {
		return nothing, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	if _, err := filetransfer.Serve(s, root, filetransfer.Store("demo"), filetransfer.AllowRemove(), filetransfer.MaxSize(maxFile)); err != nil {
		root.Close()
		return nil, err
	}
	return root.Close, nil
}
