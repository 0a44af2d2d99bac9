// Package project makes new projects.
package project

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"go/build"
	"go/format"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"golang.org/x/mod/module"

	"github.com/anser-rpc/anser/cmd/anser/internal/gen"
)

//go:embed files
var files embed.FS

// Kind is how the contract of a project is written.
type Kind string

// The kinds.
const (
	Plain     Kind = "plain"     // constants and Go types
	Proto     Kind = "proto"     // a .proto file
	Interface Kind = "interface" // a Go interface
)

// Options describes a project.
type Options struct {
	Name   string // also that of its folder
	Module string // the import path; empty means Name
	Kind   Kind
	// Version of Anser, or with Replace the folder that has it.
	Version, Replace string
}

// data is what the templates see.
type data struct {
	Options
	File      string // name of files: "my_orders"
	Package   string // of protobuf: "my_orders"
	Service   string // "MyOrders"
	Full      string // name of the service on the wire
	TextKey   string // of the text of an item in JSON
	Generated bool
}

// Call returns the beginning of a call in a test.
func (d *data) Call(method string) string {
	if d.Generated {
		return "c." + method + "(ctx, "
	}
	return "api." + method + ".Call(ctx, c, "
}

// Open returns the beginning of a call that opens a stream in a test.
func (d *data) Open(method string) string {
	if d.Generated {
		return "c." + method + "(ctx, "
	}
	return "api." + method + ".Open(ctx, c, "
}

var goodName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// inLibrary reports whether the path is that of a package of Go's library. A program that was built
// with -trimpath does not know where that is: the go command does.
func inLibrary(path string) bool {
	at := build.Default
	if at.GOROOT == "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return false // making the project needs the command too, and says so
		}
		at.GOROOT = strings.TrimSpace(string(root))
	}
	p, err := at.Import(path, "", build.FindOnly)
	return err == nil && p.Goroot
}

// Check returns an error if the options make no project.
func (o *Options) Check() error {
	if !goodName.MatchString(o.Name) || len(o.Name) > 64 {
		return fmt.Errorf("%q is not a name for a project: use small letters, digits and hyphens, such as orders or order-history", o.Name)
	}
	if word := strings.ReplaceAll(o.Name, "-", "_"); token.IsKeyword(word) {
		return fmt.Errorf("%q is a keyword of Go: use another name", o.Name)
	}
	if inLibrary(cmp.Or(o.Module, o.Name)) {
		return fmt.Errorf("%q is a package of Go's library: give the module another path with --module, such as example.com/%s", cmp.Or(o.Module, o.Name), o.Name)
	}
	if o.Module != "" {
		if err := module.CheckImportPath(o.Module); err != nil {
			return fmt.Errorf("%q is not a path for a module: use one such as example.com/%s", o.Module, o.Name)
		}
	}
	return nil
}

// Make makes the project in a new folder of its name below dir, and returns the folder. It runs the
// go command, which may download modules. If that fails, nothing is left.
func Make(ctx context.Context, dir string, o Options) (folder string, err error) {
	if err := o.Check(); err != nil {
		return "", err
	}
	folder = filepath.Join(dir, o.Name)
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("%s exists and is not empty: choose another name", folder)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	aside, err := os.MkdirTemp(dir, "."+o.Name+".*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(aside)
	if err := fill(ctx, aside, o); err != nil {
		return "", err
	}
	if err := os.Chmod(aside, 0o755); err != nil {
		return "", err
	}
	os.Remove(folder) // an empty one
	return folder, os.Rename(aside, folder)
}

// fill writes the files of the project into a folder.
func fill(ctx context.Context, folder string, o Options) error {
	d := newData(o)
	if err := d.write(folder); err != nil {
		return err
	}
	if d.Generated {
		if o.Kind == Interface { // its imports must be known
			if err := tidy(ctx, folder); err != nil {
				return err
			}
		}
		out, err := gen.Generate(ctx, gen.Options{Inputs: []string{filepath.Join(folder, "api")}, Imports: []string{folder}})
		if err != nil {
			return err
		}
		if _, err := out.Write(); err != nil {
			return err
		}
	}
	return tidy(ctx, folder)
}

func newData(o Options) *data {
	if o.Module == "" {
		o.Module = o.Name
	}
	d := &data{Options: o, Generated: o.Kind != Plain, TextKey: "Text"}
	for part := range strings.SplitSeq(o.Name, "-") {
		d.Service += strings.ToUpper(part[:1]) + part[1:]
	}
	d.File = strings.ReplaceAll(o.Name, "-", "_")
	d.Package, d.Full = d.File, d.Service
	if o.Kind == Proto {
		d.Full, d.TextKey = d.Package+".v1."+d.Service, "text"
	}
	return d
}

// write writes what is not generated.
func (d *data) write(folder string) error {
	contract := "api/" + d.File + ".go"
	source := "api.go.tmpl"
	if d.Kind == Proto {
		contract, source = "api/"+d.File+".proto", "api.proto.tmpl"
	}
	for path, from := range map[string]string{
		".gitignore": "gitignore.tmpl", "go.mod": "go.mod.tmpl", "Makefile": "Makefile.tmpl", "README.md": "README.md.tmpl",
		contract: source, "service/service.go": "service.go.tmpl", "service/service_test.go": "service_test.go.tmpl",
		"cmd/" + d.Name + "-server/main.go": "server.go.tmpl", "cmd/" + d.Name + "/main.go": "client.go.tmpl",
	} {
		if err := d.writeFile(filepath.Join(folder, filepath.FromSlash(path)), from); err != nil {
			return err
		}
	}
	return nil
}

func (d *data) writeFile(path, from string) error {
	t, err := template.New(from).Option("missingkey=error").ParseFS(files, "files/"+from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return err
	}
	content := b.Bytes()
	if strings.HasSuffix(path, ".go") {
		if content, err = format.Source(content); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// tidy runs go mod tidy.
func tidy(ctx context.Context, folder string) error {
	c := exec.CommandContext(ctx, "go", "mod", "tidy")
	c.Dir = folder
	c.Env = append(os.Environ(), "GOWORK=off", "PWD="+folder)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go mod tidy: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}
