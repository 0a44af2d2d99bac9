// Package generated contains packages with generated types, for tests that the codec "binary" and
// its limits work with the real output of the generators. It is a module of its own because of
// their runtime packages and the generators themselves.
package generated
