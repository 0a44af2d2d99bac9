// Pbgen compiles .proto files and writes the Go code of protoc-gen-go, of protoc-gen-go-vtproto
// with -vt, and of Anser's own codec with -anser, next to them, and with -connect the code of
// protoc-gen-connect-go below them. It needs no protoc: the compiler runs in the process and the
// plugins are tools of this module, so every version is pinned in its go.mod.
//
//	pbgen -root ../.. -vt internal/benchpb/benchmark.proto internal/benchpb/math.proto
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

const module = "github.com/anser-rpc/anser"

func main() {
	log.SetFlags(0)
	log.SetPrefix("pbgen: ")
	root := flag.String("root", ".", "the directory to which the files' names are relative")
	vt := flag.Bool("vt", false, "generate vtproto's methods too")
	anser := flag.Bool("anser", false, "generate Anser's methods too")
	connect := flag.Bool("connect", false, "generate Connect's clients and handlers too")
	flag.Parse()
	if err := generate(*root, *vt, *anser, *connect, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func generate(root string, vt, anser, connect bool, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("no files: name .proto files relative to -root")
	}
	request, err := compile(root, names)
	if err != nil {
		return err
	}
	if err := run(root, "", request, "go", "tool", "protoc-gen-go"); err != nil {
		return err
	}
	if vt {
		if err := run(root, ",features=marshal+unmarshal+size", request, "go", "tool", "protoc-gen-go-vtproto"); err != nil {
			return err
		}
	}
	if connect {
		if err := run(root, "", request, "go", "tool", "protoc-gen-connect-go"); err != nil {
			return err
		}
	}
	if anser { // from the working copy
		return run(root, "", request, "go", "-C", filepath.Join(root, "cmd", "anser"), "run", "./internal/pbcodec/plugin")
	}
	return nil
}

// compile returns the request that protoc would send to a plugin.
func compile(root string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names}
	seen := map[string]bool{}
	for _, f := range files {
		addFile(f, seen, request)
	}
	return request, nil
}

// addFile appends f after everything that it imports, the order that plugins expect.
func addFile(f protoreflect.FileDescriptor, seen map[string]bool, request *pluginpb.CodeGeneratorRequest) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	imports := f.Imports()
	for i := range imports.Len() {
		addFile(imports.Get(i).FileDescriptor, seen, request)
	}
	request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(f))
}

// run sends the request to a plugin and writes the files of its answer below root.
func run(root, options string, request *pluginpb.CodeGeneratorRequest, plugin ...string) error {
	parameters := []string{"paths=source_relative"}
	for _, name := range request.FileToGenerate {
		parameters = append(parameters, fmt.Sprintf("M%s=%s", name, path.Join(module, path.Dir(name))))
	}
	request.Parameter = proto.String(strings.Join(parameters, ",") + options)
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	command := exec.Command(plugin[0], plugin[1:]...)
	command.Stdin, command.Stderr = bytes.NewReader(in), os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%v: %w", plugin, err)
	}
	response := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(out, response); err != nil {
		return fmt.Errorf("%v: %w", plugin, err)
	}
	if response.Error != nil {
		return fmt.Errorf("%v: %s", plugin, response.GetError())
	}
	for _, f := range response.File {
		name := filepath.Join(root, f.GetName())
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
