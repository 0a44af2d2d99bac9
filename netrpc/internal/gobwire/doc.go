// Package gobwire reads and writes streams of encoding/gob between parties that do not trust each
// other. A gob.Decoder allocates a map from its declared length, recurses as deep as the message
// wants, and accepts messages of gigabytes; eleven bytes end a process. A [Reader] stands in front
// of it: it reads whole values, bounds them, checks their structure against the definitions of their
// types, and gives the decoder only what it has checked. A [Writer] takes back what a failed value
// left in the stream, where a gob.Encoder leaves the stream broken.
//
// A stream of gob is a sequence of messages, each with its length before it. A message defines a
// type or carries a value; a value with an interface in it can reach over several messages.
package gobwire
