// Package badinput tests the input of hostile clients against the protocols that a server speaks
// next to Anser's own. It contains tests only; the rows are numbered together with those of package
// badinput in internal/test.
package badinput
