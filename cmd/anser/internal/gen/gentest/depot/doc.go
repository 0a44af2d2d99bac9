// Package depot is a contract of FlatBuffers with all kinds of methods.
package depot
