// Package generated has types of generators in the packages below it, with which the tests show that
// the codec "binary" and its limits hold for what these really write. It is a module of its own, for their
// runtime packages and for the generators themselves.
package generated
