package gen

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	gengo "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/anser-rpc/anser/cmd/anser/internal/gocode"
	"github.com/anser-rpc/anser/cmd/anser/internal/pbcodec"
	"github.com/anser-rpc/anser/cmd/anser/internal/protofile"
	"github.com/anser-rpc/anser/contract"
)

// generateProto makes what protoc-gen-go makes of .proto files, and the code of their services.
func generateProto(ctx context.Context, o Options, files []string) ([]File, error) {
	set, err := protofile.Compile(ctx, o.Imports, files)
	if err != nil {
		return nil, err
	}
	parameters := []string{"paths=source_relative"}
	places := make(map[string]string)
	for _, f := range set.Files {
		if f.GetOptions().GetGoPackage() != "" {
			continue
		}
		at, err := o.goPackage(f)
		if err != nil {
			return nil, err
		}
		parameters = append(parameters, "M"+f.GetName()+"="+at)
	}
	for _, name := range set.Names {
		places[name] = o.folder(name, protofile.Local(o.Imports, name))
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: set.Names, ProtoFile: set.Files, Parameter: proto.String(strings.Join(parameters, ",")),
	}
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return nil, err
	}
	if err := GenerateProto(plugin, gocode.Proto{Version: Version(), Separate: o.Separate}, !o.NoCodec); err != nil {
		return nil, err
	}
	response := plugin.Response()
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	var out []File
	for _, f := range response.File {
		source := owner(set.Names, f.GetName())
		rel, err := filepath.Rel(filepath.FromSlash(path.Dir(source)), filepath.FromSlash(f.GetName()))
		if err != nil {
			return nil, err
		}
		out = append(out, File{Path: filepath.Join(places[source], rel), Content: []byte(f.GetContent()), Source: source})
	}
	return out, nil
}

func protoSchema(ctx context.Context, imports, files []string) (*contract.Schema, error) {
	set, err := protofile.Compile(ctx, imports, files)
	if err != nil {
		return nil, err
	}
	return set.Schema()
}

// GenerateProto adds the files for all protobuf files that the plugin is asked for.
func GenerateProto(plugin *protogen.Plugin, services gocode.Proto, codec bool) error {
	plugin.SupportedFeatures = gengo.SupportedFeatures
	plugin.SupportedEditionsMinimum = gengo.SupportedEditionsMinimum
	plugin.SupportedEditionsMaximum = gengo.SupportedEditionsMaximum
	if err := gocode.CheckProto(plugin); err != nil {
		return err
	}
	if codec { // before protoc-gen-go, see there
		for _, f := range plugin.Files {
			if f.Generate {
				pbcodec.Generate(plugin, f, services.Version)
			}
		}
	}
	for _, f := range plugin.Files {
		if !f.Generate {
			continue
		}
		gengo.GenerateFile(plugin, f)
		if err := services.Generate(plugin, f); err != nil {
			return err
		}
	}
	return nil
}

// owner returns the name of the contract that a file was generated from.
func owner(names []string, made string) string {
	best := ""
	for _, name := range names {
		prefix := strings.TrimSuffix(path.Base(name), ".proto")
		under := path.Dir(name) == "." || strings.HasPrefix(made, path.Dir(name)+"/")
		base := path.Base(made)
		ofIt := strings.HasPrefix(base, prefix+".") || strings.HasPrefix(base, prefix+"_protoopaque.") // of hybrid API
		if under && ofIt && len(name) > len(best) {
			best = name
		}
	}
	return best
}

// folder returns where the code of a contract goes, that is imported by the name and is the file.
func (o *Options) folder(name, file string) string {
	if o.Out != "" {
		return filepath.Join(o.Out, filepath.FromSlash(path.Dir(name)))
	}
	return filepath.Dir(file)
}

// goPackage returns the import path, and the package's name if it has one, of a file that does not
// say it: that of the folder of its code.
func (o *Options) goPackage(f *descriptorpb.FileDescriptorProto) (string, error) {
	file := protofile.Local(o.Imports, f.GetName())
	if file == "" {
		return "", fmt.Errorf("%s has no option go_package, and is not a file of this machine", f.GetName())
	}
	dir, err := filepath.Abs(o.folder(f.GetName(), file))
	if err != nil {
		return "", err
	}
	at, err := importPath(dir)
	if err != nil {
		return "", fmt.Errorf("%s has no option go_package, and %w: add one, or begin a module with \"go mod init\"", file, err)
	}
	if name := packageName(dir); name != "" {
		at += ";" + name
	}
	return at, nil
}

// importPath returns the import path of the package in a folder that need not exist.
func importPath(dir string) (string, error) {
	for root := dir; ; root = filepath.Dir(root) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil {
			module := modfile.ModulePath(text)
			rel, err := filepath.Rel(root, dir)
			if err != nil || module == "" {
				return "", fmt.Errorf("%s names no module", filepath.Join(root, "go.mod"))
			}
			return path.Join(module, filepath.ToSlash(rel)), nil
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("there is no go.mod in %s or above", dir)
		}
	}
}

// packageName returns the name of the Go package in a folder, or "".
func packageName(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly); err == nil {
			return f.Name.Name
		}
	}
	return ""
}
