// Package layout contains no code. Its tests check the repository's architecture: which packages
// may import which, what the core may link, and that all exported names are documented.
package layout
