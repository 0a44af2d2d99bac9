// Package gobwire reads and writes streams of encoding/gob between parties that do not trust each
// other. A gob.Decoder allocates a map of its declared length, recurses as deep as the message,
// and accepts messages of gigabytes; eleven bytes can end a process. A [Reader] in front of it
// reads whole values, bounds them, checks their structure against the definitions of their types,
// and passes only checked data to the decoder. A [Writer] removes the partial output of a failed
// value, which would break the stream of a gob.Encoder.
//
// A gob stream is a sequence of messages, each with its length before it. A message defines a type
// or carries a value; a value that contains an interface may span several messages.
package gobwire
