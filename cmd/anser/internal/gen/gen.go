// Package gen turns contracts into Go code: it finds the files, gives each to the front end of its
// language, and writes what comes out, all of it or nothing.
package gen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/contract"
)

// Options says what to generate.
type Options struct {
	// Inputs are files, folders and patterns such as "api/*.proto". A folder means all contracts
	// in it and below.
	Inputs []string
	// Imports are the folders relative to which .proto and .fbs files are imported; without any,
	// the working directory.
	Imports []string
	// Out is the folder for the code, "" for that of the contract. In Out a file has the folder
	// that its contract has in its import path.
	Out string
	// Separate puts the code of services into a package of its own, in a folder below that of the
	// messages.
	Separate bool
	// NoCodec leaves out the code with which messages of protobuf are encoded and decoded.
	NoCodec bool
}

// File is a file of generated code.
type File struct {
	Path    string // on this machine
	Content []byte
	Source  string // the contract, as the file's header names it
	// Overwrite says that a file without the header of generated code is replaced.
	Overwrite bool
}

// Generate returns the code for the contracts. It writes nothing.
func Generate(ctx context.Context, o Options) (*Output, error) {
	in, err := find(o.Inputs)
	if err != nil {
		return nil, err
	}
	out := new(Output)
	var all []error
	for _, l := range languages {
		files := in[l.name]
		if len(files) == 0 {
			continue
		}
		made, err := l.generate(ctx, o, files)
		out.Files = append(out.Files, made...)
		out.Contracts = append(out.Contracts, files...)
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		return nil, err
	}
	return out, out.Check()
}

// language is a language of contracts.
type language struct {
	name     string
	claims   func(file string) bool // whether a file of a folder is one
	generate func(ctx context.Context, o Options, files []string) ([]File, error)
	schema   func(ctx context.Context, imports, files []string) (*contract.Schema, error)
}

// Schemas returns the contracts among the inputs, one schema for each language that they have. The
// arguments are those of Options.
func Schemas(ctx context.Context, inputs, imports []string) (map[contract.Kind]*contract.Schema, error) {
	in, err := find(inputs)
	if err != nil {
		return nil, err
	}
	out := make(map[contract.Kind]*contract.Schema)
	var mistakes []error
	for _, l := range languages {
		if len(in[l.name]) == 0 {
			continue
		}
		s, err := l.schema(ctx, imports, in[l.name])
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		out[s.Kind] = s
	}
	return out, errors.Join(mistakes...)
}

// languages are tried in this order; the name is that of the file's ending.
var languages = []language{
	{"proto", isProto, generateProto, protoSchema},
	{"fbs", isFlatBuffers, generateFlatBuffers, flatBuffersSchema},
	{"kiss", isKiss, generateKiss, kissSchema},
	{"go", isGoContract, generateGo, goSchema},
}

// find returns the contracts among the inputs, by language, sorted and each once.
func find(inputs []string) (map[string][]string, error) {
	found := make(map[string][]string)
	add := func(file string) bool {
		for _, l := range languages {
			if l.claims(file) {
				if !slices.Contains(found[l.name], file) {
					found[l.name] = append(found[l.name], file)
				}
				return true
			}
		}
		return false
	}
	for _, input := range inputs {
		if err := expand(input, add); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no contract in %s: a contract is %s", strings.Join(inputs, ", "), kinds)
	}
	for _, files := range found {
		slices.Sort(files)
	}
	return found, nil
}

// Watched returns the files whose change may change the output: the contracts among the inputs, and
// those in the import folders.
func Watched(inputs, imports []string) []string {
	var files []string
	for _, input := range append(slices.Clone(inputs), imports...) {
		_ = expand(input, func(file string) bool {
			for _, l := range languages {
				if l.claims(file) {
					files = append(files, file)
					return true
				}
			}
			return false
		})
	}
	slices.Sort(files)
	return slices.Compact(files)
}

const kinds = "a .proto, .fbs, .kiss or .idl file, or a .go file with //anser:service above an interface"

// expand calls add for the files of one input.
func expand(input string, add func(string) bool) error {
	info, err := os.Stat(input)
	switch {
	case err == nil && info.IsDir():
		return filepath.WalkDir(input, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !d.IsDir() {
				add(path)
			} else if path != input && skipped(d.Name()) {
				return fs.SkipDir
			}
			return nil
		})
	case err == nil:
		if !add(filepath.Clean(input)) {
			return fmt.Errorf("%s is not a contract: a contract is %s", input, kinds)
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	files, globErr := filepath.Glob(input)
	if globErr != nil {
		return fmt.Errorf("%s is not a pattern: %w", input, globErr)
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no file %s", input)
	}
	for _, file := range files {
		if err := expand(file, add); err != nil {
			return err
		}
	}
	return nil
}

// skipped reports whether a folder inside an input is left out.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || name == "vendor" || name == "node_modules" || name == "testdata"
}
