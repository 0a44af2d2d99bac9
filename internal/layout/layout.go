// Package layout holds no code. Its tests hold the repository to its architecture: who may import
// whom, what the core may link, and that everything exported is documented.
package layout
