// Sbomcheck checks that a bill of materials in CycloneDX lists all modules from which the packages
// of a module are built:
//
//	sbomcheck bom.json folder-of-the-module
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("sbomcheck: ")
	if len(os.Args) != 3 {
		log.Fatal("want the file and the folder of the module")
	}
	bom, err := read(os.Args[1])
	if err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	used, err := linked(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	if err := check(bom, used); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	fmt.Printf("%s: %d components\n", os.Args[1], len(components(bom)))
}

func read(file string) (*cdx.BOM, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	bom := new(cdx.BOM)
	return bom, cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(bom)
}

// A module is a module that provides packages.
type module struct{ path, version string }

// linked returns the other modules from which the module's packages are built.
func linked(folder string) ([]module, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./...")
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cmd, folder, err)
	}
	var all []module
	for line := range strings.Lines(string(out)) {
		if path, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !slices.Contains(all, module{path, version}) {
			all = append(all, module{path, version})
		}
	}
	return all, nil
}

// ours is the prefix of the modules of this repository, each of which has its own bill.
const ours = "github.com/anser-rpc/anser"

// components returns the components of the bill, which omits the list if it is empty.
func components(bom *cdx.BOM) []cdx.Component {
	if bom.Components == nil {
		return nil
	}
	return *bom.Components
}

func check(bom *cdx.BOM, used []module) error {
	if bom.BOMFormat != cdx.BOMFormat || bom.Metadata == nil || bom.Metadata.Component == nil {
		return errors.New("it is not a bill of materials: its format or the main component is missing")
	}
	has := make(map[string]string)
	for _, c := range components(bom) {
		if !strings.HasPrefix(c.PackageURL, "pkg:golang/") {
			return fmt.Errorf("%s has the package URL %q: want pkg:golang/…", c.Name, c.PackageURL)
		}
		has[c.Name] = c.Version
	}
	var errs []error
	for _, m := range used {
		if m.path == ours || strings.HasPrefix(m.path, ours+"/") {
			continue
		}
		if version, ok := has[m.path]; !ok || version != m.version {
			errs = append(errs, fmt.Errorf("%s %s is built in and not listed (listed is %q)", m.path, m.version, version))
		}
	}
	return errors.Join(errs...)
}
