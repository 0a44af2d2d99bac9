// Package link is a connection as the codecs of netrpc and netrpc/jsonrpc use it. What is written goes
// into a buffer that whoever comes first writes out for all; what is read must arrive at a pace
// that an honest peer keeps.
package link
